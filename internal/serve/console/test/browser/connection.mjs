// The daemon goes and comes back; connections break; sessions end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, daemon, guarded, host, page, signedIn, until } from '../helper.mjs';

const lost = [/ERR_CONNECTION_REFUSED/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_SOCKET_NOT_CONNECTED/, /ERR_CONNECTION_CLOSED/];

/** numbers are the lines of a call's output, as they stand on the page. */
const numbers = async (p, of) => [...(await p.locator('.output').innerText()).matchAll(new RegExp(`line (\\d+) of ${of}:`, 'g'))].map((m) => Number(m[1]));

const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);

test('the printed link signs in, and a token of this tab keeps it', async () => {
  const p = await signedIn();
  await p.locator('#connection[data-kind=live]').waitFor();
  assert.deepEqual(await p.context().cookies(), []);
  assert.match(await p.evaluate(() => sessionStorage.getItem('toolhost.session')), /^toolhost_/);
  assert.doesNotMatch(p.url(), /login|key|token|link/);
  await p.reload();
  await p.locator('#connection[data-kind=live]').waitFor();
  p.allowed.push(/401/);
  await p.evaluate(() => sessionStorage.clear());
  await p.reload();
  await p.locator('#banner', { hasText: 'toolhost console' }).waitFor();
  await p.done();
});

test('connections that break lose nothing and double nothing', async () => {
  const n = 300;
  const turn = await host.begin({ agentId: 'cut' });
  const results = host.run(turn, [call('talk', { lines: n, everyMs: 10, says: 'still here', hold: 'cut' })]);
  const p = await signedIn();
  p.allowed.push(...lost);
  await p.locator('.call-head').click();
  for (const seen of [20, 90, 160]) {
    await until(`line ${seen}`, async () => (await numbers(p, n)).at(-1) >= seen);
    await daemon.cut();
  }
  await p.locator('.output', { hasText: `line ${n} of ${n}` }).waitFor();
  assert.deepEqual(await numbers(p, n), upTo(n));
  assert.equal(await p.locator('.gap').count(), 0);
  await daemon.letGo('cut');
  await results;
  await host.end(turn);
  await p.locator('.recent', { hasText: '1 OK' }).waitFor();
  await p.done();
});

test('a daemon that is killed and started again: the page says so, and goes on by itself', async () => {
  const n = 40;
  const turn = await host.begin({ agentId: 'before' });
  host.run(turn, [call('talk', { lines: n, says: 'old', hold: 'for ever' })]);
  const p = await page();
  p.allowed.push(...lost);
  await p.locator('.call-head').click();
  await p.locator('.output', { hasText: `line ${n} of ${n}` }).waitFor();
  await daemon.kill();
  await p.locator('#banner', { hasText: 'cannot be reached' }).waitFor();
  const frozen = () => p.locator('.call-timer').innerText();
  const was = await frozen();
  await p.waitForFunction((from) => performance.now() > from + 1300, await p.evaluate(() => performance.now()));
  assert.equal(await frozen(), was, 'without the daemon nobody knows what runs');
  assert.deepEqual(await numbers(p, n), upTo(n));

  await daemon.start();
  await p.locator('.toast', { hasText: 'Connected again' }).waitFor();
  await p.locator('#banner').waitFor({ state: 'hidden' });
  await p.locator('.recent', { hasText: 'before' }).getByText('cut off').waitFor();
  const next = await host.begin({ agentId: 'afterwards' });
  const results = host.run(next, [call('talk', { lines: n, says: 'new', hold: 'next' })]);
  await p.locator('.turn', { hasText: 'afterwards' }).locator('.call-head').click();
  await p.locator('.output', { hasText: `line ${n} of ${n}` }).waitFor();
  assert.deepEqual(await numbers(p, n), upTo(n));
  await daemon.letGo('next');
  await results;
  await host.end(next);

  // What is on record is what was seen: no event lost, none twice.
  for (const id of [turn, next]) {
    await p.goto(new URL(`#/history/${id}`, p.url()).href);
    await p.locator(`.fall-row[href*="${id}"]`).first().waitFor();
    const lines = await p.locator('.event-words', { hasText: /line \d+ of 40/ }).allInnerTexts();
    assert.deepEqual(lines.map((l) => Number(l.match(/line (\d+)/)[1])).reverse(), upTo(n));
  }
  await p.done();
});

test('a session goes on with the next daemon, and ends when it is logged out of', async () => {
  const p = await signedIn();
  p.allowed.push(...lost, /401/);
  await p.locator('#connection[data-kind=live]').waitFor();
  await daemon.kill();
  await p.locator('#banner', { hasText: 'cannot be reached' }).waitFor();
  // The button asks at once; it is pressed while there is no daemon, since it
  // goes away as soon as the page has found one by itself.
  const asked = p.waitForRequest(/\/api\//);
  await p.getByRole('button', { name: 'Try now' }).click();
  await asked;
  await daemon.start();
  await p.locator('#connection[data-kind=live]').waitFor();
  await p.getByRole('button', { name: /^Sign out \(token: admin\)$/ }).click();
  await p.locator('#banner', { hasText: 'not signed in' }).waitFor();
  await p.goto(await daemon.link());
  await p.locator('#connection[data-kind=live]').waitFor();
  await p.done();
});

test('who is not signed in is told how, in a page', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const p = await page('/', { base: guarded, colorScheme, viewport: { width: 320, height: 640 } });
    p.allowed.push(/40[13]/);
    await p.locator('#banner code', { hasText: 'toolhost console' }).waitFor();
    assert.ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const link = await daemon.link();
    await p.goto(link);
    await p.locator('#connection[data-kind=live]').waitFor();
    assert.doesNotMatch(p.url(), /link=/, 'the secret stays in the address');
    assert.deepEqual(await p.context().cookies(), [], 'there is a cookie, which every port would get');
    await p.evaluate(() => sessionStorage.clear());
    await p.goto('about:blank');
    await p.goto(link);
    await p.locator('.toast', { hasText: 'opened before' }).waitFor();
    await p.locator('#banner code', { hasText: 'toolhost console' }).waitFor();
    await p.done();
  }
});

test('a window that is refused, and visible all the time, asks again when it is turned to or told to', async () => {
  const p = await page();
  p.allowed.push(/403/);
  for (const again of [() => p.evaluate(() => dispatchEvent(new Event('focus'))), () => p.getByRole('button', { name: 'Try now' }).click()]) {
    await p.route('**/api/whoami', (route) => route.fulfill({ status: 403, json: { error: { code: 'forbidden', message: 'no' } } }));
    await p.reload(); // refused at once, it asks no more by itself
    await p.locator('#banner', { hasText: 'You may not see turns here: no.' }).waitFor();
    await p.unroute('**/api/whoami');
    await again();
    await p.locator('#connection[data-kind=live]').waitFor();
  }
  await p.done();
});

test('windows side by side leave each other connections', async () => {
  const turns = await Promise.all(['a', 'b', 'c'].map(() => host.begin({ agentId: 'side by side' })));
  const asked = host.run(turns[0], [call('ask', { text: 'who looks?' })]);
  const held = turns.slice(1).map((turn) => host.run(turn, [call('talk', { hold: 'side' })]));
  const p = await page();
  const other = await p.context().newPage();
  await other.goto(p.url());
  for (const each of [p, other]) {
    await each.locator('.ask').waitFor();
    await until('both are counted', () => each.evaluate(async () => (await navigator.locks.query()).held.length === 2));
    // Polls that come through: each of them has a connection.
    for (let i = 0; i < 3; i++) await each.waitForResponse((r) => r.url().endsWith('/api/turns/active') && r.ok());
  }
  await other.locator('.ask').getByRole('button', { name: 'Approve' }).click();
  assert.equal((await asked)[0].status, 'ok');
  await daemon.letGo('side');
  await Promise.all(held);
  await Promise.all(turns.map((t) => host.end(t)));
  await p.done();
});
