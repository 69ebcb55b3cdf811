// Takes pictures of the views, for people to look at.

import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { call, close, daemon, guarded, host, launch, page, until } from './helper.mjs';
import { history, reached, running } from './demo.mjs';

const folder = process.env.CONSOLE_PICTURES;
const only = process.env.CONSOLE_ONLY?.split(',');
const wide = { width: 1440, height: 900 };
const narrow = { width: 390, height: 844 };
const sizes = {
  wide: { viewport: wide },
  dark: { viewport: wide, colorScheme: 'dark' },
  narrow: { viewport: narrow },
  'narrow-dark': { viewport: narrow, colorScheme: 'dark' },
};

before(async () => {
  mkdirSync(folder, { recursive: true });
  await launch();
});
after(async () => {
  await close();
  await daemon.kill(); // so that no turn is waited for
});

/** approve has calls approved for more than one. */
async function approve() {
  for (const [n, given] of [{ for: 'turn' }, { for: 'session' }, { for: 'session', sameArguments: true }, { for: 'identity' }].entries()) {
    const turn = await host.begin({ sessionId: 'nightly-release' });
    host.run(turn, [call('ask', { path: `/srv/out/report-${n}.txt`, text: 'Quarterly figures, with a name that is rather long' }, `given-${n}`)]);
    const question = await until('a question', async () => (await host.get('/api/interactions')).interactions.find((q) => q.turnId === turn) ?? (n > 1 ? {} : null));
    if (question.interactionId) await host.answer(question.interactionId, { approve: true, always: true, ...given });
  }
}

async function shoot(name, path, { base, sizes: wanted = Object.keys(sizes), act = async () => {}, ready = '#connection[data-kind=live]' } = {}) {
  if (only && !only.some((o) => name.startsWith(o))) return;
  for (const size of wanted) {
    const from = path ?? (await daemon.link()).slice(guarded.length); // a link opens once
    const p = await page(from, { ...sizes[size], ...(base ? { base } : {}) });
    p.allowed.push(/./);
    await p.waitForSelector(ready).catch(async (error) => {
      await p.screenshot({ path: `${folder}/${name}-${size}-failed.png` });
      throw error;
    });
    await act(p, size).catch((error) => console.log(`${name}-${size}: ${error.message}`));
    await p.evaluate(() => scrollTo(0, 0));
    await p.waitForTimeout(700);
    await p.screenshot({ path: `${folder}/${name}-${size}.png`, fullPage: size.startsWith('narrow') || name.endsWith('-full') });
    await p.done();
  }
}

test('pictures', async () => {
  await shoot('empty-live', '/', { sizes: ['wide', 'narrow'] });
  await shoot('empty-history', '/#/history', { sizes: ['wide'], ready: '.empty' });
  await shoot('empty-charts', '/#/charts', { sizes: ['wide'], ready: '.empty' });
  const [one] = await running();
  await history();
  const last = (await host.get('/api/history/turns?limit=30')).turns.find((t) => t.state === 'ended' && t.calls > 5);
  const calls = (await host.get(`/api/history/calls?turn=${last.turnId}`)).calls;
  await shoot('live', '/', { ready: '.ask', act: async (p) => {
    await p.locator('.call-head', { hasText: 'run_tests' }).click();
  } });
  await shoot('history', '/#/history', { ready: '.record' });
  await shoot('history-calls', '/#/history?of=calls', { ready: '.record', sizes: ['wide', 'narrow'] });
  await shoot('turn', `/#/history/${last.turnId}`, { ready: '.fall-row', act: async (p, size) => {
    if (size === 'dark') await p.getByLabel('Time of the replay').fill('400');
  } });
  await shoot('turn-open', `/#/history/${one}`, { ready: '.fall-row', sizes: ['wide'] });
  const failed = calls.find((c) => c.status === 'oom' || c.status === 'timeout') ?? calls[0];
  await shoot('call-full', `/#/history/${last.turnId}/${failed.toolCallId}`, { ready: '.evidence' });
  await shoot('tools', '/#/tools/work', { ready: '.trial', act: async (p, size) => {
    if (size !== 'dark') return;
    await p.locator('.trial').getByLabel('text').fill('Hello');
    await p.getByRole('button', { name: 'Run' }).click();
    await p.waitForSelector('.trial-result .record-columns');
  } });
  await shoot('tools-list', '/#/tools', { ready: '.tool-link', sizes: ['narrow'] });
  await shoot('charts-full', '/#/charts', { ready: '.chart .dot' });
  await shoot('help', '/', { sizes: ['wide'], act: (p) => p.keyboard.press('?') });
  await shoot('signed-out', '/', { base: guarded, ready: '#banner:not([hidden])' });
  await shoot('signed-in', null, { base: guarded, ready: '#account:not([hidden])', sizes: ['wide', 'narrow-dark'] });
  await shoot('empty-approvals', '/#/approvals', { ready: '.approvals .empty', sizes: ['wide', 'narrow'] });
  await approve();
  await shoot('approvals', '/#/approvals', { ready: '.approval' });
  const reaching = await host.begin({});
  await host.run(reaching, [call('reach', { text: 'done', network: reached }, 'netcall')]);
  host.run(reaching, [call('reach', { question: { ID: 'q', Prompt: 'reach wants api.example.com:443', Reach: 'api.example.com:443' } }, 'netask')]);
  await shoot('network-call-full', `/#/history/${reaching}/netcall`, { ready: '.evidence' });
  await shoot('network-ask', '/', { ready: '.ask' });
  await shoot('missing-call', '/#/history/nosuch/call', { ready: '.problem:not([hidden])', sizes: ['wide'] });
  await shoot('lost', '/', { sizes: ['narrow'], ready: '.ask', act: async (p) => {
    await daemon.kill();
    await p.waitForSelector('#banner:not([hidden])');
    await p.waitForTimeout(1200);
    await daemon.start();
  } });
});
