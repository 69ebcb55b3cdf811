// What a batch comes to, read from a stream.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

delete globalThis.BroadcastChannel; // it would keep this process
const { Lost, Refusal, run } = await import('../../static/js/api.js');

const { fetch } = globalThis;
afterEach(() => (globalThis.fetch = fetch));

/** answer has the daemon answer with these pieces, and gives what it was asked. */
function answer(...pieces) {
  const asked = [];
  globalThis.fetch = async (url, options) => {
    asked.push({ url, ...options });
    const body = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    return new Response(body);
  };
  return asked;
}

const calls = [{ id: '1', tool: 'count' }];

test('a batch is asked for as a stream, which a proxy does not give up', async () => {
  const asked = answer(': toolhost\n\nid: 1\nevent: tool_queued\ndata: {"seq":1}\n\n: heartbeat\n\nevent: results\ndata: {"results":[{"callId":"1","con', 'tent":[],"structured":{}}]}\n\n');
  const [result] = await run('a/b', calls);
  assert.equal(result.callId, '1');
  assert.equal(asked[0].url, '/api/turns/a%2Fb/calls');
  assert.equal(asked[0].headers.Accept, 'text/event-stream');
  assert.deepEqual(JSON.parse(asked[0].body), { calls });
});

test('a batch that did not run, or breaks off, has no results', async () => {
  answer('event: error\ndata: {"error":{"code":"conflict","message":"another batch runs","remedy":"wait"}}\n\n');
  await assert.rejects(run('t', calls), (error) => error instanceof Refusal && error.code === 'conflict' && error.remedy === 'wait');
  answer(': toolhost\n\nevent: results\ndata: {"res');
  await assert.rejects(run('t', calls), Lost);
});

test('a batch for which no stream is left is run without one, and other refusals stand', async () => {
  for (const [code, want] of [['quota_exceeded', '1'], ['busy', '1'], ['forbidden', 'forbidden']]) {
    globalThis.fetch = async (url, { headers }) => headers.Accept
      ? Response.json({ error: { code, message: 'no' } }, { status: 429 })
      : Response.json({ results: [{ callId: '1', content: [] }] });
    assert.equal(await run('t', calls).then(([result]) => result.callId, (error) => error.code), want);
  }
});
