import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Replay, maxEvents } from '../../static/js/replay.js';

const events = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => ({ seq: from + i, time: new Date(from + i).toISOString(), turnId: 't', kind: 'tool_progress', toolCallId: 'a', message: `${from + i}` }));

test('of a turn that goes on and on the first events are kept, and it says so', () => {
  const replay = new Replay('t');
  replay.add(events(1, maxEvents - 10));
  assert.deepEqual([replay.length, replay.room, replay.cut], [maxEvents - 10, 10, false]);
  replay.add(events(maxEvents - 20, maxEvents));
  assert.deepEqual([replay.length, replay.room, replay.cut], [maxEvents, 0, false]);
  replay.add(events(maxEvents, maxEvents + 10_000));
  assert.deepEqual([replay.length, replay.lastSeq, replay.cut], [maxEvents, maxEvents, true]);
  assert.equal(replay.seek(Infinity).turn.calls.get('a').message, String(maxEvents));
});
