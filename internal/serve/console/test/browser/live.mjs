// Live: cancel, the pace, and a page that is used with the keyboard alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, daemon, host, page } from '../helper.mjs';

const callOf = (p, tool) => p.locator('.call', { has: p.locator('.call-name', { hasText: tool }) });

test('a call is cancelled, and its turn goes on', async () => {
  const turn = await host.begin({ agentId: 'one' });
  const results = host.run(turn, [call('stuck', { hold: 'stuck' }), call('slow', { hold: 'slow', text: 'well' })]);
  const p = await page();
  const row = callOf(p, 'stuck');
  await row.locator('.call-timer', { hasText: /^\d+s$/ }).waitFor();
  await row.getByRole('button', { name: 'Cancel: stuck' }).click();
  await p.locator('.toast', { hasText: 'Call cancelled: stuck' }).waitFor();
  await p.locator('.call[data-state=ended]', { hasText: 'Cancelled' }).waitFor();
  assert.equal(await callOf(p, 'slow').getAttribute('data-state'), 'running');
  await daemon.letGo('slow');
  assert.deepEqual((await results).map((r) => r.status), ['cancelled', 'ok']);
  await host.end(turn);
  await p.done();
});

test('a second cancel kills a call that does not go', async () => {
  const turn = await host.begin({ agentId: 'two' });
  const results = host.run(turn, [call('deaf', { hold: 'deaf', grace: true })]);
  const p = await page();
  const row = callOf(p, 'deaf');
  await row.locator('.call-limit', { hasText: 'of 30s' }).waitFor(); // it is made of events, no more of the list
  await row.getByRole('button', { name: 'Cancel: deaf' }).click();
  await row.getByText('It is being stopped').waitFor();
  await row.getByRole('button', { name: 'Kill now: deaf' }).click();
  assert.equal((await results)[0].status, 'cancelled');
  await host.end(turn);
  await p.done();
});

test('a turn is cancelled: all of its calls, and no other turn', async () => {
  const turn = await host.begin({ agentId: 'doomed' });
  const other = await host.begin({ agentId: 'spared' });
  const results = host.run(turn, [...'abcdef'].map((c) => call(`hold_${c}`, { hold: c })));
  const spared = host.run(other, [call('hold_z', { hold: 'z' })]);
  const p = await page();
  const card = p.locator(`.turn[data-turn="${turn}"]`);
  await card.locator('.call').nth(5).waitFor();
  await card.getByRole('button', { name: 'Cancel turn' }).click();
  await p.locator('.toast', { hasText: 'Turn cancelled' }).waitFor();
  const list = await results;
  assert.deepEqual(list.map((r) => r.status), Array(6).fill('cancelled'));
  await card.locator('.turn-facts', { hasText: 'cancelled' }).waitFor();
  await host.end(turn);
  await p.locator('.recent', { hasText: 'doomed' }).getByText('turn cancelled').waitFor();
  assert.equal(await p.locator(`.turn[data-turn="${other}"] .call[data-state=running]`).count(), 1);
  await daemon.letGo('z');
  assert.equal((await spared)[0].status, 'ok');
  await host.end(other);
  await p.done();
});

test('turns that are over before they are seen have just ended', async () => {
  const p = await page();
  await p.locator('.live-recent', { hasText: 'No turn has ended since this page was opened.' }).or(p.locator('.recent li').first()).first().waitFor();
  // The page asks what is active between them, and never while one is.
  const short = async (name) => {
    const turn = await host.begin({ agentId: name });
    await host.run(turn, [call('quick', { text: 'done' })]);
    await host.end(turn);
  };
  await p.route('**/api/turns/active', (route) => route.fulfill({ json: { turns: [] } }));
  for (const name of ['brief_1', 'brief_2']) await short(name);
  for (const name of ['brief_1', 'brief_2']) await p.locator('.recent li', { hasText: name }).locator('.tally', { hasText: '1' }).waitFor();
  await p.done();
});

test('the time is counted here: green under 10 s, yellow to 30 s, red over', async () => {
  const p = await page('/#/tools');
  p.allowed.push(/404|ERR_FAILED/);
  const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
  const tools = [0, 18, 45].map((s) => ({ toolCallId: `c${s}`, toolName: `since_${s}`, state: 'running', startedAt: ago(s), timeoutMs: 60_000 }));
  const made = { turnId: 'made-up', agentId: 'clock', sessionId: '', startedAt: ago(50), currentTools: tools, toolCallCount: 3, timedOutTools: [], pendingInteractions: [] };
  await p.route('**/api/turns/active', (route) => route.fulfill({ json: { turns: [made] } }));
  await p.route('**/api/turns/made-up/events', () => {}); // it never answers
  await p.keyboard.press('1');
  const row = (s) => p.locator(`.call[data-call=c${s}]`);
  await row(45).waitFor();
  const looks = [];
  for (const s of [0, 18, 45]) {
    const [pace, colour, mark] = await row(s).evaluate((n) => [n.dataset.pace, getComputedStyle(n.querySelector('.call-timer')).color, getComputedStyle(n.querySelector('.call-timer'), '::before').content]);
    looks.push([pace, mark]);
    assert.ok(!looks.slice(0, -1).some((l) => l[2] === colour));
    looks.at(-1)[2] = colour;
  }
  assert.deepEqual(looks.map((l) => l[0]), ['ok', 'slow', 'late']);
  assert.equal(new Set(looks.map((l) => l[1])).size, 3, 'a shape tells the paces apart, too');
  assert.equal(new Set(looks.map((l) => l[2])).size, 3);
  // The same answer again and again: what goes on is the browser's own count.
  const was = await row(18).locator('.call-timer').innerText();
  await p.waitForFunction((before) => document.querySelector('[data-call=c18] .call-timer').innerText !== before, was);
  await p.done();
});

test('output comes as it is made, below its call', async () => {
  const turn = await host.begin({ agentId: 'talker' });
  const results = host.run(turn, [call('talk', { lines: 3, says: 'hello', steps: 1, of: 2, hold: 'talk', stderr: 'careful\n' })]);
  const p = await page();
  const row = callOf(p, 'talk');
  await row.locator('.call-progress').waitFor();
  assert.equal(await row.locator('.call-progress').evaluate((n) => n.value), 0.5);
  await row.locator('.call-head').click();
  const output = row.getByRole('region', { name: 'Output' });
  await output.getByText('line 3 of 3: hello').waitFor();
  assert.match(await output.innerText(), /^stderr\s*careful\s+content\s*line 1 of 3/);
  await row.locator('.call-facts', { hasText: 'of memory, 3 processes' }).waitFor();
  await daemon.letGo('talk');
  await results;
  await row.getByRole('link', { name: 'Open the record' }).click();
  await p.locator('h1', { hasText: 'talk' }).waitFor();
  await host.end(turn);
  await p.done();
});

test('it is used with the keyboard alone', async () => {
  const p = await page();
  const press = (...keys) => keys.reduce((done, k) => done.then(() => p.keyboard.press(k)), Promise.resolve());
  const focused = () => p.evaluate(() => document.activeElement.closest('.call')?.querySelector('.call-name').textContent ?? document.activeElement.textContent);
  await p.locator('#connection[data-kind=live]').waitFor();
  await press('Tab');
  assert.equal(await focused(), 'Skip to the content');
  await press('Enter');
  assert.equal(await p.evaluate(() => document.activeElement.id), 'main');
  for (const [key, title] of [['2', 'History'], ['3', 'Tools'], ['4', 'Charts'], ['5', 'Approvals'], ['1', 'Live']]) {
    await press(key);
    await p.waitForFunction((t) => document.title.includes(t), title);
  }
  await press('?');
  await p.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await press('Escape');
  await p.getByRole('dialog').waitFor({ state: 'hidden' });

  const turn = await host.begin({ agentId: 'keys' });
  const first = host.run(turn, [call('ask', { text: 'yes' })]);
  await p.locator('.ask button[type=submit][aria-disabled=false]').waitFor();
  await press('w');
  await p.waitForFunction(() => document.activeElement.matches('.ask button'));
  await press('Enter');
  assert.equal((await first)[0].status, 'ok');

  const rest = host.run(turn, ['up', 'down', 'end'].map((t) => call(t, { hold: t })));
  await callOf(p, 'end').waitFor();
  await p.locator('.call-head').first().focus();
  await press('End');
  assert.equal(await focused(), 'end');
  await press('ArrowUp', 'Enter');
  assert.equal(await focused(), 'down');
  assert.equal(await p.evaluate(() => document.activeElement.getAttribute('aria-expanded')), 'true');
  await press('x');
  await p.locator('.call[data-state=ended]', { hasText: 'down' }).waitFor();
  assert.equal(await focused(), 'down', 'the focus stays where it was');
  await press('Shift+X');
  assert.deepEqual((await rest).map((r) => r.status), ['cancelled', 'cancelled', 'cancelled']);
  await host.end(turn);
  await p.done();
});

test('calls of one tool are told apart, and who waits for a human is not queued', async () => {
  const turn = await host.begin({ agentId: 'alike' });
  const long = 'a'.repeat(61) + '-01';
  const results = host.run(turn, [call('first', { hold: 'first' }, 'f'), call('ask', {}, 'asked'), call('solo', {}, 'one'), call('solo', {}, 'two'), call('solo', {}, long)]);
  const p = await page();
  await p.locator('.ask').waitFor();
  const figure = (name) => p.locator(`[data-figure=${name}] dd`).innerText();
  await p.locator('.turn-facts', { hasText: '1 running · 1 waiting for people · 3 queued' }).waitFor();
  assert.deepEqual([await figure('running'), await figure('queued'), await figure('waiting')], ['1', '3', '1']);
  for (const [id, width, shown] of [['two', 1280, 'two'], [long, 1280, '…aaaaaa-01'], [long, 320, '…aaaaaa-01']]) {
    await p.setViewportSize({ width, height: 860 });
    const preview = p.locator(`.call[data-call="${id}"] .call-preview`);
    await preview.waitFor();
    assert.equal(await preview.innerText(), shown);
    assert.ok(await preview.evaluate((n) => n.scrollWidth <= n.clientWidth), `${width} pixels: all of it is seen`);
  }
  await p.getByRole('button', { name: 'Cancel: solo, call two' }).click();
  await p.locator('.toast', { hasText: 'Call cancelled: solo, call two' }).waitFor();
  await p.locator('.call[data-call=two][data-state=ended]').waitFor();
  assert.equal(await p.locator('.call[data-call=one]').getAttribute('data-state'), 'queued');
  await host.abort(turn);
  await results;
  await host.end(turn);
  await p.done();
});
