import assert from 'node:assert/strict';
import { test } from 'node:test';
import { active, apply, applyActive, applyPast, asking, asks, callElapsed, callsOf, createState, idsOf, keepEnded, keepOver, letGo, lose, recent, skip, turnElapsed, underWay } from '../../static/js/store.js';

const at = (s) => new Date(1_700_000_000_000 + s * 1000).toISOString();
const ms = (s) => 1_700_000_000_000 + s * 1000;

/** world applies events of one turn, numbered as they come. */
function world(id = 't') {
  const state = createState();
  let seq = 0;
  const say = (kind, second, fields = {}) => apply(state, { seq: ++seq, time: at(second), turnId: id, kind, ...fields });
  return { state, say, turn: () => state.turns.get(id), call: (c) => state.turns.get(id).calls.get(c) };
}

const of = (toolCallId, fields = {}) => ({ toolCallId, toolName: 'work', ...fields });
const ask = (interactionId, second, seconds, fields = {}) => ({ interactionId, turnId: 't', toolCallId: 'a', toolName: 'work', kind: 'approval', prompt: '?', timeoutMs: seconds * 1000, expiresAt: at(second + seconds), ...fields });
const info = (fields = {}) => ({ turnId: 't', agentId: 'me', sessionId: '', startedAt: at(0), currentTools: [], toolCallCount: 0, timedOutTools: [], pendingInteractions: [], ...fields });

test('a call goes from queued to its outcome', () => {
  const w = world();
  w.say('turn_start', 0, { agentId: 'me' });
  w.say('tool_queued', 1, of('a'));
  assert.equal(w.call('a').state, 'queued');
  w.say('tool_placed', 1, of('a', { worker: 'w1', attempt: 1 }));
  assert.deepEqual([w.call('a').state, w.call('a').worker], ['queued', 'w1']);
  w.say('tool_started', 2, of('a', { timeoutMs: 30_000 }));
  w.say('tool_progress', 4, of('a', { fraction: 0.5, message: 'half' }));
  w.say('tool_output', 4, of('a', { stream: 'stderr', content: { type: 'text', text: 'no' }, missed: 3 }));
  assert.equal(callElapsed(w.call('a'), ms(7)), 5000);
  w.say('tool_timeout', 32, of('a', { timeoutMs: 30_000 }));
  assert.equal(w.call('a').state, 'stopping');
  w.say('tool_failed', 33, of('a', { status: 'timeout', reason: 'deadline', display: '[TIMEOUT]', elapsedMs: 31_000 }));
  w.say('tool_reaped', 34, of('a'));
  w.say('turn_end', 35);
  const { state, fraction, message, status, endedAt, reapedAt, output } = w.call('a');
  assert.deepEqual({ state, fraction, message, status, endedAt, reapedAt, missed: output.missed }, { state: 'ended', fraction: 0.5, message: 'half', status: 'timeout', endedAt: ms(33), reapedAt: ms(34), missed: 3 });
  assert.deepEqual(w.turn().counts, { timeout: 1 });
  assert.equal(turnElapsed(w.turn(), ms(99)), 35_000);
  assert.deepEqual([active(w.state).length, recent(w.state).length], [0, 1]);
});

test('what was there before is left out, and what is missing is counted', () => {
  const state = createState();
  const e = (seq) => ({ seq, time: at(seq), turnId: 't', kind: 'tool_output', ...of('a', { content: { type: 'text', text: `${seq} ` } }) });
  assert.deepEqual([1, 2, 2, 1, 3].map((seq) => apply(state, e(seq))), [true, true, false, false, true]);
  apply(state, e(6));
  skip(state, { turnId: 't', fromSeq: 7, toSeq: 9 });
  skip(state, { turnId: 't', fromSeq: 7, toSeq: 9 });
  assert.equal(apply(state, e(9)), false);
  apply(state, e(10));
  const turn = state.turns.get('t');
  assert.equal(turn.gaps, 5);
  assert.equal(turn.calls.get('a').output.chunks.map((c) => c.text).join(''), '1 2 3 6 10 ');
});

test('timers stand still while a human is waited for, and overlapping waits count once', () => {
  const w = world();
  w.say('turn_start', 0);
  w.say('tool_queued', 0, of('a'));
  w.say('tool_queued', 0, of('b'));
  w.say('tool_started', 0, of('a'));
  w.say('tool_started', 0, of('b'));
  w.say('interaction_pending', 10, of('a', { interactionId: 'i', pending: true }));
  w.say('interaction_request', 10, of('a', { interactionId: 'i', interactionKind: 'questionnaire', timeoutMs: 60_000, expiresAt: at(70) }));
  assert.ok(asking(w.turn()) && asking(w.call('a')) && !asking(w.call('b')));
  assert.deepEqual([callElapsed(w.call('a'), ms(30)), callElapsed(w.call('b'), ms(30)), turnElapsed(w.turn(), ms(30))], [10_000, 30_000, 10_000]);
  w.say('interaction_pending', 20, of('a', { interactionId: 'j', pending: true }));
  w.say('interaction_response', 30, of('a', { interactionId: 'i', outcome: 'answered' }));
  w.say('interaction_response', 40, of('a', { interactionId: 'j', outcome: 'timeout' }));
  assert.equal(asks(w.state).length, 0);
  assert.deepEqual([callElapsed(w.call('a'), ms(50)), turnElapsed(w.turn(), ms(50))], [20_000, 20_000]);
  assert.deepEqual(w.call('a').asked.map((x) => [x.from, x.to, x.outcome]), [[ms(10), ms(30), 'answered']]);
});

test('what was waited for before the start is not part of the run', () => {
  const w = world();
  w.say('tool_queued', 0, of('a'));
  w.say('interaction_pending', 0, of('a', { interactionId: 'i', pending: true }));
  w.say('interaction_pending', 50, of('a', { interactionId: 'i', pending: false }));
  w.say('tool_started', 50, of('a'));
  assert.equal(callElapsed(w.call('a'), ms(53)), 3000);
});

test('the list of active turns completes what the events tell', () => {
  const w = world();
  w.say('turn_start', 0);
  w.say('tool_queued', 0, of('a#2'));
  assert.deepEqual(applyActive(w.state, [info({ pendingInteractions: [ask('i', 1, 60, { arguments: { x: 1 } })] })], ms(5)), []);
  assert.deepEqual(asks(w.state)[0].arguments, { x: 1 });
  assert.ok(asking(w.call('a#2')), 'the id that the model gave means the call that is open');
  assert.equal(turnElapsed(w.turn(), ms(20)), 1000);
  w.say('interaction_response', 5, of('a#2', { interactionId: 'i', outcome: 'denied' }));
  applyActive(w.state, [info({ pendingInteractions: [ask('i', 1, 60)] })], ms(6));
  assert.equal(asks(w.state).length, 0, 'a list that is a moment old does not ask again');
});

test('a question that the list lacks goes the second time', () => {
  const w = world();
  w.say('interaction_request', 1, of('a', { interactionId: 'i', interactionKind: 'approval', timeoutMs: 60_000, expiresAt: at(61) }));
  w.say('interaction_pending', 1, of('a', { interactionId: 'i', pending: true }));
  applyActive(w.state, [info()], ms(2));
  assert.equal(asks(w.state).length, 1);
  applyActive(w.state, [info()], ms(3));
  assert.equal(asks(w.state).length, 0);
});

test('turns that are gone are named until their end is known', () => {
  const w = world();
  w.say('turn_start', 0);
  assert.deepEqual(applyActive(w.state, [], ms(1)), ['t']);
  lose(w.state, 't', ms(2));
  assert.ok(w.turn().lost && w.turn().over);
  assert.deepEqual(applyActive(w.state, [], ms(3)), []);
});

test('nothing waits in a turn that is no longer active, and its events say until when it did', () => {
  const w = world();
  w.say('turn_start', 0);
  w.say('tool_queued', 0, of('a'));
  applyActive(w.state, [info({ pendingInteractions: [ask('i', 1, 60)] })], ms(2));
  applyActive(w.state, [], ms(9));
  assert.equal(asks(w.state).length, 0);
  w.say('interaction_request', 1, of('a', { interactionId: 'i', interactionKind: 'approval', timeoutMs: 60_000, expiresAt: at(61) }));
  w.say('interaction_response', 4, of('a', { interactionId: 'i', outcome: 'denied' }));
  w.say('turn_end', 5);
  assert.deepEqual([asks(w.state).length, turnElapsed(w.turn(), ms(9)), w.call('a').asked.map((x) => [x.from, x.to])], [0, 2000, [[ms(1), ms(4)]]]);
});

test('of turns that are over unseen, the last ones whose events are here stay', () => {
  const state = createState();
  const ids = Array.from({ length: keepOver + 5 }, (_, i) => `t${i}`);
  applyActive(state, [...ids, 'new'].map((turnId) => info({ turnId })), ms(1));
  for (const turnId of ids) apply(state, { seq: 1, time: at(0), turnId, kind: 'turn_start' });
  assert.deepEqual(letGo(state, applyActive(state, [], ms(2))), ids.slice(5));
  assert.deepEqual([...state.turns.keys()], ids.slice(5));
});

test('before its events are here a turn shows the calls of the list', () => {
  const state = createState();
  const tools = [{ toolCallId: 'a', toolName: 'work', state: 'running', startedAt: at(3) }, { toolCallId: 'b', toolName: 'ask', state: 'asking' }];
  applyActive(state, [info({ currentTools: tools, pendingInteractions: [ask('i', 4, 60, { toolCallId: 'b' })] })], ms(5));
  const [a, b] = callsOf(state.turns.get('t'));
  assert.deepEqual([a.state, callElapsed(a, ms(5)), asking(a), b.state, asking(b)], ['running', 2000, false, 'queued', true]);
});

test('who waits for a human is not queued', () => {
  const w = world();
  for (const id of 'abcd') w.say('tool_queued', 0, of(id));
  w.say('interaction_pending', 1, of('a', { interactionId: 'i', pending: true }));
  w.say('tool_started', 1, of('b'));
  w.say('interaction_pending', 2, of('b', { interactionId: 'j', pending: true }));
  w.say('tool_finished', 3, of('d', { status: 'ok' }));
  assert.deepEqual(underWay(callsOf(w.turn())), { running: 1, waiting: 1, queued: 1 });
});

test('an abort has what runs be stopped', () => {
  const w = world();
  w.say('tool_queued', 0, of('a'));
  w.say('tool_queued', 0, of('b'));
  w.say('tool_started', 1, of('a'));
  w.say('turn_abort', 2, { reason: 'user' });
  assert.deepEqual([w.call('a').state, w.call('b').state, w.turn().abortReason], ['stopping', 'queued', 'user']);
});

test('what is kept is bounded', () => {
  const w = world();
  for (let i = 0; i < keepEnded + 50; i++) {
    w.say('tool_queued', i, of(`c${i}`));
    w.say('tool_finished', i, of(`c${i}`, { status: 'ok' }));
  }
  assert.equal(w.turn().calls.size, keepEnded);
  assert.deepEqual([w.turn().ended, w.turn().trimmed, w.turn().counts.ok], [keepEnded + 50, 50, keepEnded + 50]);
  for (let i = 0; i < keepOver + 5; i++) {
    apply(w.state, { seq: 1, time: at(i), turnId: `o${i}`, kind: 'turn_end' });
  }
  applyActive(w.state, [info()], ms(999));
  assert.deepEqual([recent(w.state).length, recent(w.state)[0].id], [keepOver, `o${keepOver + 4}`]);
});

test('ids that a daemon may know a call by', () => {
  assert.deepEqual([idsOf('a'), idsOf('a#2'), idsOf('a#b')], [['a'], ['a#2', 'a'], ['a#b']]);
});

test('turns on record that were never seen active have ended, and others are as they were seen', () => {
  const w = world('seen');
  w.say('turn_start', 0);
  const past = (turnId, second, fields = {}) => ({ turnId, agentId: 'me', state: 'ended', started: at(second), ended: at(second + 1), events: 9, calls: 1, outcomes: { ok: 1 }, ...fields });
  assert.deepEqual(applyPast(w.state, [past('seen', 0), past('short', 1), past('stopped', 2, { state: 'aborted', outcomes: { cancelled: 1 } }), past('open', 3, { state: 'open', ended: undefined })]), ['short', 'stopped']);
  assert.deepEqual(recent(w.state).map((t) => [t.id, t.endedAt, t.abortedAt, t.counts]), [['stopped', ms(3), ms(3), { cancelled: 1 }], ['short', ms(2), 0, { ok: 1 }]]);
  assert.deepEqual(active(w.state).map((t) => t.id), ['seen']);
  assert.deepEqual(applyPast(w.state, [past('short', 1)]), []);
  applyPast(w.state, Array.from({ length: 2 * keepOver }, (_, i) => past(`more${i}`, 10 + i)));
  assert.equal(recent(w.state).length, keepOver);
});

test('a question that is listed stays whole when its event comes behind the list', () => {
  const w = world();
  w.say('turn_start', 0);
  w.say('tool_queued', 0, of('a'));
  applyActive(w.state, [info({ pendingInteractions: [ask('i', 1, 60)] })], ms(1));
  w.say('interaction_request', 1, of('a', { interactionId: 'i', interactionKind: 'approval', prompt: '?' }));
  assert.ok(!w.turn().asks.get('i')?.partial);
});

test('a turn on record keeps all of its calls', () => {
  const state = createState(Infinity);
  for (let i = 0; i < keepEnded + 50; i++) {
    apply(state, { seq: 2 * i + 1, time: at(i), turnId: 't', kind: 'tool_queued', ...of(`c${i}`) });
    apply(state, { seq: 2 * i + 2, time: at(i), turnId: 't', kind: 'tool_finished', ...of(`c${i}`, { status: 'ok' }) });
  }
  assert.equal(state.turns.get('t').calls.size, keepEnded + 50);
});
