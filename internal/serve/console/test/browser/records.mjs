// What is on record: history, replay, a call's evidence, charts; and the tools.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { call, host, page, until } from '../helper.mjs';
import { history, reached } from '../demo.mjs';

before(() => history(4));

test('history is narrowed by tool and outcome, and leads to a turn', async () => {
  const p = await page('/#/history');
  await p.locator('.of-turns .record').first().waitFor();
  await p.getByRole('link', { name: 'Calls', exact: true }).click();
  await p.locator('.of-calls .record').first().waitFor();
  await p.keyboard.press('/');
  await p.keyboard.type('read_file');
  await p.keyboard.press('Enter');
  await until('only that tool', async () => new Set(await p.locator('.record-name').allInnerTexts()).size === 1);
  await p.getByLabel('Outcome').selectOption('tool_error');
  await until('only that outcome', async () => (await p.locator('.record-what').allInnerTexts()).every((t) => t.startsWith('Tool error')));
  assert.match(p.url(), /tool=read_file.*status=tool_error/);
  await p.getByLabel('Outcome').selectOption('cpu_limit');
  await p.getByText('No call is on record for this filter.').waitFor();
  await p.goBack();
  await p.locator('.record').first().focus();
  await p.keyboard.press('ArrowDown');
  await p.keyboard.press('Enter');
  await p.locator('.evidence').first().waitFor();
  await p.done();
});

test('older ones are read when they are asked for, each once', async () => {
  const turn = await host.begin({ maxCalls: 200 });
  for (let i = 0; i < 3; i++) await host.run(turn, Array.from({ length: 30 }, (_, k) => call(`paged_${i}_${k}`, {})));
  await host.end(turn);
  const p = await page('/#/history?of=calls');
  await p.getByRole('button', { name: 'Show older ones' }).click();
  await until('a second page', async () => (await p.locator('.record').count()) > 60);
  const names = (await p.locator('.record-name').allInnerTexts()).filter((n) => n.startsWith('paged_'));
  assert.equal(names.length, 90);
  assert.equal(new Set(names).size, 90);
  await p.done();
});

test('a turn is played again on its time line', async () => {
  const turn = await host.begin({ agentId: 'played' });
  const results = host.run(turn, [call('short', { ms: 50, text: 's' }), call('ask', { ms: 100 }), call('long', { ms: 300, text: 'l' })]);
  const { turns } = await until('the question', async () => {
    const list = await host.get('/api/turns/active');
    return list.turns.some((t) => t.pendingInteractions.length > 0) && list;
  });
  await host.answer(turns.find((t) => t.turnId === turn).pendingInteractions[0].interactionId, { approve: true });
  await results;
  await host.end(turn);
  const p = await page(`/#/history/${turn}`);
  await p.locator('.fall-row .part-run').nth(2).waitFor();
  assert.ok(await p.locator('.fall-row', { hasText: 'ask' }).locator('.part-ask').count() === 1);
  const all = await p.locator('.events > li').count();
  const slider = p.getByLabel('Time of the replay');
  await slider.focus();
  await p.keyboard.press('Home');
  await until('fewer events', async () => (await p.locator('.events > li').count()) < all);
  assert.equal(await p.locator('.fall-rows > li[data-then=ended]').count(), 0);
  await p.getByRole('button', { name: 'On to the next event' }).click();
  await p.getByRole('button', { name: 'Play' }).click();
  await until('all of it', async () => (await p.locator('.events > li').count()) === all);
  assert.equal(await p.locator('.fall-rows > li[data-then=ended]').count(), 3);
  await p.locator('.fall-row').first().focus();
  await p.keyboard.press('ArrowDown');
  await p.keyboard.press('Enter');
  await p.locator('.evidence').first().waitFor();
  await p.done();
});

test('a call shows what it has reached by its grants, and what was refused', async () => {
  const turn = await host.begin({});
  await host.run(turn, [call('reach', { text: 'done', network: reached }, 'netcall')]);
  await host.end(turn);
  const p = await page(`/#/history/${turn}/netcall`);
  await p.getByText('2 connections').waitFor();
  const text = await p.locator('.record-side').innerText();
  assert.match(text, /pypi\.org 151\.101\.0\.223 port 443 2 connections, 2\.0 KiB sent, 3\.0 MiB received/);
  assert.match(text, /down\.example\.com port 443 1 connection, .* by a proxy: connection refused/);
  assert.match(text, /telemetry\.example\.com 4 times: not granted/);
  assert.match(text, /once: the TLS server name is <b>evil<\/b>\.example/);
  assert.match(text, /Unreachable\s+3 attempts/);
  await p.done();
});

test('a call shows what it proves: kill, limits, receipt', async () => {
  const turn = await host.begin({});
  const results = host.run(turn, [call('victim', { hold: 'victim', grace: true, lines: 2, stderr: 'oh no\n', peakMib: 250 }, 'v')]);
  await until('it runs', async () => (await host.get('/api/turns/active')).turns.find((t) => t.turnId === turn)?.currentTools[0]?.state === 'running');
  await host.abort(turn);
  await host.abort(turn);
  await results;
  await host.end(turn);
  const p = await page(`/#/history/${turn}/v`);
  await p.locator('.evidence').first().waitFor();
  const side = await p.locator('.record-side').innerText();
  for (const part of [/Grace/, /250 MiB of 256 MiB/, /SIGTERM, SIGKILL/, /Processes gone\s+3/, /SIGKILL to gone\s+1\.8 ms/, /Network\s+none/, /Landlock\s+ABI 4/, /io weight is not enforced/, /7 measures enforced/]) assert.match(side, part);
  assert.match(await p.locator('.record-main').innerText(), /oh no/);
  await p.done();
});

test('a tool is tried: its form checks, its turn runs, its result is shown', async () => {
  const p = await page('/#/tools');
  await p.locator('.problem', { hasText: 'the binary /usr/lib/toolhost/broken is missing' }).waitFor();
  await p.keyboard.press('/');
  await p.keyboard.type('wor');
  await p.locator('.tool-link').nth(1).waitFor({ state: 'detached' });
  await p.getByRole('link', { name: /^work/ }).click();
  await p.getByText('Schema of the arguments').click();
  assert.match(await p.locator('.schema pre').innerText(), /"required": \[\s+"text"/);
  const trial = p.getByRole('form', { name: 'Try it' });
  await trial.getByRole('button', { name: 'Run' }).click();
  await trial.getByText('This is needed.').waitFor();
  await trial.getByLabel('text').fill('Hello');
  await trial.getByLabel('Timeout in seconds').fill('5');
  await trial.getByRole('button', { name: 'Run' }).click();
  await p.locator('.trial-result .record-columns').waitFor();
  assert.match(await p.locator('.trial-result').innerText(), /OK[\s\S]*Hello/);

  await trial.getByRole('button', { name: 'Write JSON' }).click();
  assert.match(await trial.getByLabel('Arguments').inputValue(), /"text": "Hello"/);
  await trial.getByLabel('Arguments').fill('{"text": "no end", "hold": "trial"}');
  await trial.getByRole('button', { name: 'Run' }).click();
  await trial.locator('.trial-status', { hasText: /Running.*\d+s/s }).waitFor();
  await p.evaluate(() => {
    window.heard = 0;
    new MutationObserver(() => window.heard++).observe(document.querySelector('.trial [role=status]'), { subtree: true, childList: true, characterData: true });
  });
  const clock = () => trial.locator('.trial-status [aria-hidden]').innerText();
  const then = await clock();
  await until('the clock goes on', async () => await clock() !== then);
  assert.equal(await p.evaluate(() => window.heard), 0, 'a reader hears each second');
  await trial.getByRole('button', { name: 'Cancel' }).click();
  await p.locator('.toast', { hasText: 'Turn cancelled' }).waitFor();
  await p.locator('.trial-result', { hasText: 'Cancelled' }).waitFor();
  await p.done();
});

test('charts draw outcomes, latency and memory, and say it in tables too', async () => {
  const p = await page('/#/charts');
  await p.locator('.chart', { hasText: 'Memory peaks' }).locator('.dot').first().waitFor();
  assert.deepEqual(await p.locator('.chart h2').allInnerTexts(), ['Outcomes over time', 'Latency', 'Outcomes by tool', 'Latency by tool', 'Memory peaks']);
  const chart = p.locator('.chart', { hasText: 'Outcomes by tool' });
  await chart.getByText('As a table').click();
  const { calls } = await host.get('/api/history/calls?tool=web_search');
  const row = chart.getByRole('row', { name: /^web_search/ });
  assert.equal(await row.getByRole('cell').first().innerText(), String(calls.length));
  await p.done();
});

test('numbers are sent and shown with all their digits', async () => {
  const p = await page('/#/tools/work');
  const trial = p.getByRole('form', { name: 'Try it' });
  await trial.getByLabel('text').fill('digits');
  await trial.getByLabel('big').fill('18446744073709551615');
  await trial.getByLabel('echo').check();
  const run = async () => {
    const sent = p.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/calls'));
    await trial.getByRole('button', { name: 'Run' }).click();
    return (await sent).postData();
  };
  assert.match(await run(), /"big":18446744073709551615[,}]/);
  await p.locator('.trial-result', { hasText: '"big": 18446744073709551615' }).waitFor();
  await trial.getByRole('button', { name: 'Write JSON' }).click();
  assert.match(await trial.getByLabel('Arguments').inputValue(), /"big": 18446744073709551615/);
  await trial.getByLabel('Arguments').fill('{"text": "t", "echo": true, "big": [9007199254740993]}');
  assert.match(await run(), /"big":\[9007199254740993\]/);
  await p.locator('.trial-result', { hasText: '9007199254740993' }).waitFor();
  await trial.locator('.trial-status a', { hasText: 'on record' }).click();
  await p.locator('.fall-row').click();
  await p.locator('.record-main', { hasText: '9007199254740993' }).waitFor();
  await p.done();
});

const longName = 'Wm0_'.repeat(16);

test('names too long for their place are cut at their end', async () => {
  const turn = await host.begin({ agentId: 'begin-' + 'A'.repeat(58) });
  // More than of most tools: a chart has but a dozen.
  await host.run(turn, Array.from({ length: 30 }, () => call(longName, { ms: 5, text: 'x' })));
  await host.end(turn);
  const p = await page('/#/history');
  for (const width of [1280, 320]) {
    await p.setViewportSize({ width, height: 800 });
    await p.evaluate(() => (location.hash = '#/history'));
    const agent = p.locator('.record-agent', { hasText: 'begin-AAA' });
    await agent.waitFor();
    const { height, lines } = await agent.evaluate((n) => ({ height: n.clientHeight, lines: parseFloat(getComputedStyle(n).lineHeight) || 20 }));
    assert.ok(height < 1.6 * lines, `${width} pixels: one line, not ${height} pixels`);
    await p.evaluate(() => (location.hash = '#/history?of=calls'));
    const row = p.locator('.of-calls .record', { hasText: 'Wm0_' }).first();
    await row.waitFor();
    const left = (part) => row.locator(`.record-${part}`).evaluate((n) => n.getBoundingClientRect().left);
    if (width === 320) assert.ok((await left('name')) < (await left('span')) && (await left('what')) < (await left('time')), 'the parts are in their order');
    await p.evaluate(() => (location.hash = '#/charts'));
    await p.locator('.chart', { hasText: 'Memory peaks' }).locator('.name-text', { hasText: /^Wm/ }).waitFor();
    const begins = await p.locator('.name-text').evaluateAll((all) => all.map((n) => [n.textContent, n.getBBox().x]));
    assert.ok(begins.filter(([name]) => /^Wm.*…$/.test(name)).length === 3, `${begins}`);
    for (const [name, x] of begins) assert.ok(x >= 0, `${width} pixels: ${name} begins at ${x}`);
  }
  await p.done();
});

test('what a reason says fits the outcome', async () => {
  const turn = await host.begin({});
  await host.run(turn, [call('exits', { status: 'tool_error', reason: 'error', message: '[FAILED] exits: status 3' }, 'e'),
    call('late', { status: 'cancelled', reason: 'timeout' }, 'l')]);
  await host.end(turn);
  const p = await page('/#/history?of=calls');
  assert.equal(await p.locator('.record', { hasText: 'exits' }).first().locator('.record-what').innerText(), 'Tool error');
  assert.match(await p.locator('.record', { hasText: 'late' }).first().locator('.record-what').innerText(), /the turn’s deadline passed/);
  await p.goto(new URL(`#/history/${turn}/e`, p.url()).href);
  await p.locator('.evidence').first().waitFor();
  assert.doesNotMatch(await p.locator('main').innerText(), /host failed/);
  await p.done();
});
