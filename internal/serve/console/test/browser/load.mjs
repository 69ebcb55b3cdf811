// Much of everything, and everything nasty.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, daemon, host, page, textOf, until } from '../helper.mjs';

const rounds = 3;
const maxRounds = 10;
const perRound = 1000; // of some 120 characters
const maxChars = 80_000; // that stand on the page

/** cost is what the page's main thread has worked so far, and what it holds. */
async function cost(cdp) {
  const { metrics } = await cdp.send('Performance.getMetrics');
  const of = (name) => metrics.find((m) => m.name === name).value;
  return { busy: of('TaskDuration'), nodes: of('Nodes') };
}

test('a thousand events after thousands more cost what the first thousand did', async () => {
  const p = await page();
  const cdp = await p.context().newCDPSession(p);
  await cdp.send('Performance.enable');
  const turn = await host.begin({ agentId: 'flood', maxCalls: 1000 });
  const costs = [];
  const round = async (i) => {
    const before = await cost(cdp);
    const id = `flood-${i}`;
    // All in one call's output, unfolded, beside calls that end at once.
    const results = host.run(turn, [
      call('flood', { lines: perRound, everyMs: 1, says: 'x'.repeat(100), hold: id }, id),
      ...Array.from({ length: 30 }, (_, k) => call('quick', { text: `${i} ${k}` })),
    ]);
    const row = p.locator(`.call[data-call="${id}"]`);
    await row.locator('.call-head').click();
    await row.getByText(`line ${perRound} of ${perRound}`).first().waitFor();
    const chars = (await row.locator('.output').innerText()).length;
    assert.ok(chars < maxChars, `${chars} characters of one call`);
    await daemon.letGo(id);
    await results;
    await p.locator(`.call[data-call="${id}"][data-state=ended]`).waitFor();
    await cdp.send('HeapProfiler.collectGarbage');
    const after = await cost(cdp);
    costs.push({ busy: after.busy - before.busy, nodes: after.nodes, rows: await p.locator('.call').count() });
  };
  for (let i = 0; i < rounds; i++) await round(i);
  // A busy machine makes any round look cheap or dear; one that costs more and
  // more is never cheap again.
  const base = Math.max(costs[0].busy, costs[1].busy);
  for (let i = rounds; i < maxRounds && costs.at(-1).busy >= 2 * base; i++) await round(i);
  assert.ok(costs.at(-1).busy < 2 * base, `slower and slower: ${JSON.stringify(costs)}`);
  // The first round warms the page up.
  assert.ok(costs.at(-1).nodes < 1.2 * costs[1].nodes, `more and more: ${JSON.stringify(costs)}`);
  assert.ok(costs.every((c) => c.rows <= 40), `a row for each: ${JSON.stringify(costs)}`);
  await host.end(turn);
  await p.done();
});

test('a dozen turns at once: each is seen to its end', async () => {
  const p = await page();
  const n = 12;
  const ids = await Promise.all(Array.from({ length: n }, (_, i) => host.begin({ agentId: `many-${i}` })));
  const results = ids.map((id, i) => host.run(id, [call('quick', { ms: 5 * i, text: `${i}` })]));
  await p.locator('.turn').nth(n - 1).waitFor();
  await Promise.all(results);
  await Promise.all(ids.map((id) => host.end(id)));
  await until('no turn is left', async () => (await p.locator('.turn').count()) === 0);
  assert.equal(await p.locator('.recent', { hasText: 'cut off' }).count(), 0);
  assert.equal(await p.locator('.recent > li', { hasText: '1 OK' }).count(), n);
  await p.done();
});

const nasty = '<script>window.owned=1</script><img src=x onerror="window.owned=2">&lt;b&gt; \u001b[31mred\u001b[0m \u202eesrever\u202c \u2066iso\u2069 \u0007bell \u009b31m';
const bad = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

async function harmless(p, where) {
  const text = await textOf(p);
  assert.doesNotMatch(text, bad, where);
  assert.match(text, /<script>window\.owned=1<\/script>/, where);
  const found = await p.evaluate(() => [window.owned ?? null, document.querySelectorAll('main script, main img, main b, [onerror]').length]);
  assert.deepEqual(found, [null, 0], where);
}

test('what a tool says is text, wherever it is shown', async () => {
  const turn = await host.begin({ agentId: nasty.slice(0, 40), sessionId: nasty.slice(40, 80) });
  const results = host.run(turn, [call('talk', { lines: 2, says: nasty, stderr: nasty, steps: 1, hold: 'nasty', text: nasty })]);
  const p = await page();
  await p.locator('.call-head').click();
  await p.locator('.output', { hasText: 'line 2 of 2' }).waitFor();
  await harmless(p, 'live');
  assert.match(await textOf(p), /␛\[31mred␛\[0m ⟨202E⟩esrever⟨202C⟩ ⟨2066⟩iso⟨2069⟩ ␇bell ⟨009B⟩31m/);
  await daemon.letGo('nasty');
  const [result] = await results;
  const asked = host.run(turn, [call('survey', { question: { ID: 'q', Prompt: nasty, Schema: { type: 'object', title: nasty, properties: { [nasty]: { type: 'string', description: nasty } } } } })]);
  await p.locator('.ask').waitFor();
  await harmless(p, 'a question');
  await p.locator('.ask').getByRole('button', { name: 'Deny' }).click();
  await asked;
  await host.end(turn);
  for (const path of [`#/history/${turn}`, `#/history/${turn}/${result.callId}`]) {
    await p.goto(new URL(path, p.url()).href);
    await p.locator(path.endsWith(turn) ? '.fall-row' : '.evidence').first().waitFor();
    await harmless(p, path);
  }
  await p.done();
});
