import assert from 'node:assert/strict';
import { test } from 'node:test';
import { segmentsOf, sumOf } from '../../static/js/segments.js';

const timing = (fields) => ({ timing: { queueMs: 0, startMs: 0, runMs: 0, graceMs: 0, drainMs: 0, humanWaitMs: 0, ...fields } });
const call = (fields) => ({ queuedAt: 1000, startedAt: 0, stoppingAt: 0, endedAt: 0, asked: [], ...fields });
const inOrder = (segments) => segments.map(({ kind, from, to }) => `${kind} ${from}-${to}`);

test('the start-up is what comes before tool_started, and counts once', () => {
  const stuck = call({ startedAt: 1409, stoppingAt: 3000, endedAt: 3501 });
  const segments = segmentsOf(stuck, timing({ startMs: 407, runMs: 1592, graceMs: 500 }), 0);
  assert.deepEqual(inOrder(segments), ['queue 1000-1002', 'start 1002-1409', 'run 1409-3001', 'grace 3001-3501']);
  assert.deepEqual(sumOf(segments), { queue: 2, start: 407, run: 1592, grace: 500 });
});

test('a start that takes longer than the events tell begins with the call', () => {
  assert.deepEqual(inOrder(segmentsOf(call({ startedAt: 1400, endedAt: 1500 }), timing({ startMs: 407, runMs: 100 }), 0)), ['start 1000-1400', 'run 1400-1500']);
});

test('a call that failed at its start had one', () => {
  assert.deepEqual(inOrder(segmentsOf(call({ endedAt: 1500 }), timing({ queueMs: 100, startMs: 400 }), 0)), ['queue 1000-1100', 'start 1100-1500']);
});

test('without a result the run is what the events tell', () => {
  assert.deepEqual(inOrder(segmentsOf(call({}), undefined, 1200)), ['queue 1000-1200']);
  assert.deepEqual(inOrder(segmentsOf(call({ startedAt: 1400, stoppingAt: 2000 }), undefined, 2100)), ['queue 1000-1400', 'run 1400-2000', 'grace 2000-2100']);
});

test('waiting for a human before the run is not a queue', () => {
  const asked = [{ from: 1100, to: 1500 }];
  assert.deepEqual(inOrder(segmentsOf(call({ asked, startedAt: 1700, endedAt: 2000 }), timing({ startMs: 100, runMs: 300 }), 0)),
    ['queue 1000-1100', 'queue 1500-1600', 'start 1600-1700', 'run 1700-2000', 'ask 1100-1500']);
  assert.deepEqual(inOrder(segmentsOf(call({ asked: [{ from: 1100, to: 0 }] }), undefined, 1900)), ['queue 1000-1100', 'ask 1100-1900']);
});
