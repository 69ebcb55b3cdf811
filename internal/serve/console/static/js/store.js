// The state that the console shows, made of a turn's events and of the list of
// active turns. Pure: no clock, no network, no document; times are in
// milliseconds since 1970, and whoever calls brings the present one.

import { append, appendContent, newOutput, shrink } from './output.js';

/** Limits of what is kept. */
export const keepOver = 12; // turns that are over
export const keepEnded = 400; // ended calls of a turn
const keepEndedChars = 8 * 1024; // of an ended call's output

export function createState(keep = keepEnded) {
  return { turns: new Map(), others: [], past: false, keep, me: null };
}

function newTurn(id) {
  return {
    id, agentId: '', sessionId: '', parentId: '',
    startedAt: 0, endedAt: 0, abortedAt: 0, abortReason: '', over: false, lost: false,
    seq: 0, gaps: 0, calls: new Map(), ended: 0, trimmed: 0, counts: {}, missed: 0,
    asks: new Map(), settled: new Set(), wait: newWait(), summary: null,
  };
}

function newCall(id, tool, time) {
  return {
    id, tool, state: 'queued', queuedAt: time, startedAt: 0, stoppingAt: 0, endedAt: 0, reapedAt: 0,
    worker: '', timeoutMs: 0, fraction: null, message: '', overran: false, timedOut: false,
    status: '', reason: '', decider: '', display: '', elapsedMs: 0,
    output: newOutput(), wait: newWait(), asked: [],
  };
}

/** A wait is the time that humans are waited for; overlapping ones count once. */
function newWait() {
  return { open: new Set(), since: 0, total: 0 };
}

function beginWait(wait, id, time) {
  if (wait.open.size === 0) wait.since = time;
  wait.open.add(id);
}

function endWait(wait, id, time) {
  if (!wait.open.delete(id) || wait.open.size > 0) return;
  wait.total += Math.max(0, time - wait.since);
}

function waited(wait, now) {
  return wait.total + (wait.open.size > 0 ? Math.max(0, now - wait.since) : 0);
}

/** turnOf finds a turn, or makes it. */
export function turnOf(state, id) {
  let turn = state.turns.get(id);
  if (!turn) {
    turn = { ...newTurn(id), keep: state.keep };
    state.turns.set(id, turn);
  }
  return turn;
}

/** turnElapsed is how long a turn lasts, less what it waits for humans. */
export function turnElapsed(turn, now) {
  const end = turn.endedAt || now;
  return Math.max(0, end - turn.startedAt - waited(turn.wait, end));
}

/** callElapsed is how long a call runs, less what it waits for humans. */
export function callElapsed(call, now) {
  if (!call.startedAt) return 0;
  const end = call.endedAt || now;
  return Math.max(0, end - call.startedAt - waited(call.wait, end));
}

/** asking: a human is waited for. */
export const asking = (of) => of.wait.open.size > 0;

/** underWay counts calls that have not ended: those that wait for a human to begin are not queued. */
export function underWay(calls) {
  const open = calls.filter((c) => !c.endedAt);
  const running = open.filter((c) => c.startedAt).length;
  const waiting = open.filter((c) => !c.startedAt && asking(c)).length;
  return { running, waiting, queued: open.length - running - waiting };
}

/**
 * apply brings an event in. Events that were there before are left out, and
 * those that are missing are counted. It returns whether anything changed.
 */
export function apply(state, event) {
  const turn = turnOf(state, event.turnId);
  if (event.seq <= turn.seq) return false;
  if (event.seq > turn.seq + 1) turn.gaps += event.seq - turn.seq - 1;
  turn.seq = event.seq;
  turn.missed += event.missed ?? 0;
  const time = Date.parse(event.time);
  turn.startedAt ||= time;
  (ofTurn[event.kind] ?? ofCall)(turn, event, time);
  return true;
}

/** skip notes that events up to a seq are not to be had. */
export function skip(state, gap) {
  const turn = turnOf(state, gap.turnId);
  if (gap.toSeq <= turn.seq) return;
  turn.gaps += gap.toSeq - turn.seq;
  turn.seq = gap.toSeq;
}

const ofTurn = {
  turn_start(turn, event, time) {
    turn.startedAt = time;
    turn.agentId = event.agentId ?? '';
    turn.sessionId = event.sessionId ?? '';
    turn.parentId = event.parentTurnId ?? '';
  },
  turn_abort(turn, event, time) {
    turn.abortedAt = time;
    turn.abortReason = event.reason ?? '';
    for (const call of turn.calls.values()) {
      if (call.state === 'running') stopping(call, time);
    }
  },
  turn_end(turn, event, time) {
    finish(turn, time);
  },
  interaction_request(turn, event, time) {
    callOf(turn, event, time)?.asked.push({ id: event.interactionId, kind: event.interactionKind, from: time, to: 0, outcome: '' });
    if (turn.settled.has(event.interactionId)) return;
    const known = turn.asks.get(event.interactionId);
    turn.asks.set(event.interactionId, {
      interactionId: event.interactionId, turnId: turn.id, toolCallId: event.toolCallId ?? '', toolName: event.toolName ?? '',
      kind: event.interactionKind, prompt: event.prompt ?? '', schema: event.schema, timeoutMs: event.timeoutMs,
      expiresAt: event.expiresAt, default: event.default, ...(known ?? { partial: true }),
    });
  },
  interaction_response(turn, event, time) {
    settle(turn, event.interactionId, time);
    const asked = turn.calls.get(event.toolCallId)?.asked.find((a) => a.id === event.interactionId);
    if (asked) Object.assign(asked, { to: time, outcome: event.outcome, by: event.by });
  },
  interaction_pending(turn, event, time) {
    if (!event.pending) settle(turn, event.interactionId, time);
    else if (!turn.settled.has(event.interactionId)) wait(turn, event.toolCallId, event.interactionId, time);
  },
};

function wait(turn, callId, id, time) {
  beginWait(turn.wait, id, time);
  const call = turn.calls.get(callId);
  if (call) beginWait(call.wait, id, time);
}

function settle(turn, id, time) {
  turn.settled.add(id);
  turn.asks.delete(id);
  endWait(turn.wait, id, time);
  for (const call of turn.calls.values()) endWait(call.wait, id, time);
}

function finish(turn, time) {
  turn.over = true;
  turn.endedAt = time;
  for (const id of [...turn.asks.keys(), ...turn.wait.open]) settle(turn, id, time);
}

function callOf(turn, event, time) {
  if (!event.toolCallId) return null;
  let call = turn.calls.get(event.toolCallId);
  if (!call) {
    call = newCall(event.toolCallId, event.toolName ?? '', time);
    turn.calls.set(call.id, call);
  }
  return call;
}

function ofCall(turn, event, time) {
  const change = callKinds[event.kind];
  const call = change && callOf(turn, event, time);
  if (call) change(call, event, time, turn);
}

const callKinds = {
  tool_queued() {},
  tool_placed(call, event) {
    call.worker = event.worker ?? '';
  },
  tool_started(call, event, time) {
    call.state = 'running';
    call.startedAt = time;
    call.timeoutMs = event.timeoutMs ?? 0;
    call.wait = newWait(); // what was waited for before is not part of the run
  },
  tool_progress(call, event) {
    call.fraction = event.fraction ?? call.fraction;
    call.message = event.message ?? call.message;
  },
  tool_output(call, event) {
    call.output.missed += event.missed ?? 0;
    appendContent(call.output, event.stream ?? 'content', event.content);
  },
  tool_log(call, event) {
    append(call.output, 'log', (event.message ?? '') + '\n');
  },
  tool_overran(call) {
    call.overran = true;
  },
  tool_timeout(call, event, time) {
    call.timedOut = true;
    call.timeoutMs = event.timeoutMs ?? call.timeoutMs;
    stopping(call, time);
  },
  tool_finished: ended,
  tool_failed: ended,
  tool_reaped(call, event, time) {
    call.reapedAt = time;
  },
};

function stopping(call, time) {
  call.state = 'stopping';
  call.stoppingAt ||= time;
}

/** stopAsked notes that somebody here has cancelled a call. */
export function stopAsked(call, time) {
  if (call.state === 'running') stopping(call, time);
}

function ended(call, event, time, turn) {
  if (call.endedAt) return;
  Object.assign(call, {
    state: 'ended', endedAt: time, status: event.status ?? (event.kind === 'tool_finished' ? 'ok' : 'tool_error'),
    reason: event.reason ?? '', decider: event.decider ?? '', display: event.display ?? '', elapsedMs: event.elapsedMs ?? 0,
  });
  for (const id of call.wait.open) endWait(call.wait, id, time);
  shrink(call.output, keepEndedChars);
  turn.counts[call.status] = (turn.counts[call.status] ?? 0) + 1;
  turn.ended++;
  trim(turn);
}

/** trim forgets the oldest ended calls; the journal has them. */
function trim(turn) {
  if (turn.ended - turn.trimmed <= turn.keep) return;
  for (const [id, call] of turn.calls) {
    if (call.endedAt) {
      turn.calls.delete(id);
      turn.trimmed++;
      return;
    }
  }
}

/**
 * applyActive brings in the list of active turns as it is now. It returns the
 * ids of turns that are open here but no longer active: nothing waits in them,
 * and their last events are to be fetched.
 */
export function applyActive(state, list, now) {
  const active = new Set();
  for (const info of list) {
    active.add(info.turnId);
    const turn = turnOf(state, info.turnId);
    if (turn.over) continue;
    turn.summary = info;
    turn.startedAt ||= Date.parse(info.startedAt);
    turn.agentId ||= info.agentId;
    turn.sessionId ||= info.sessionId;
    turn.parentId ||= info.parentTurnId ?? '';
    applyAsks(turn, info.pendingInteractions, now);
  }
  prune(state);
  const gone = [...state.turns.values()].filter((t) => !t.over && !active.has(t.id));
  for (const turn of gone) withdraw(turn);
  return gone.map((t) => t.id);
}

/** withdraw takes a turn's questions back; when they were settled is in its events. */
function withdraw(turn) {
  for (const id of turn.asks.keys()) turn.settled.add(id);
  turn.asks.clear();
}

/**
 * letGo forgets turns that have ended while nobody looked, which are on record. The
 * last ones whose events are here stay, to be shown to their end: it returns their ids.
 */
export function letGo(state, gone) {
  const begun = new Set(gone.filter((id) => state.turns.get(id).seq > 0).slice(-keepOver));
  for (const id of gone) if (!begun.has(id)) state.turns.delete(id);
  return [...begun];
}

/** The list may be a moment older than the events: what it lacks goes the second time. */
function applyAsks(turn, list, now) {
  const there = new Set();
  for (const ask of list) {
    there.add(ask.interactionId);
    if (turn.settled.has(ask.interactionId)) continue;
    turn.asks.set(ask.interactionId, ask);
    wait(turn, keyOf(turn, ask.toolCallId), ask.interactionId, beganAt(ask));
  }
  for (const [id, ask] of turn.asks) {
    if (there.has(id)) continue;
    if (ask.absent) settle(turn, id, now);
    else ask.absent = true;
  }
}

/** applyOthers brings in the questions of turns that are not shown to us. */
export function applyOthers(state, list) {
  state.others = list.filter((ask) => !state.turns.has(ask.turnId));
}

const beganAt = (ask) => Date.parse(ask.expiresAt) - ask.timeoutMs;

/** keyOf finds the call that a list means by the id that the model gave it. */
function keyOf(turn, id) {
  for (const call of turn.calls.values()) {
    if (!call.endedAt && (call.id === id || call.id.startsWith(id + '#'))) return call.id;
  }
  return id;
}

/** usageOf is what a call's processes used when the list was made, or null. */
export function usageOf(turn, call) {
  if (call.endedAt || !turn.summary) return null;
  const ids = idsOf(call.id);
  return turn.summary.currentTools.find((t) => ids.includes(t.toolCallId))?.usage ?? null;
}

/** idsOf are what a daemon may know a call by: it makes repeated ids unique. */
export function idsOf(callId) {
  const plain = callId.replace(/#\d+$/, '');
  return plain === callId ? [callId] : [callId, plain];
}

/** lose ends a turn whose end is nowhere on record. */
export function lose(state, id, now) {
  const turn = state.turns.get(id);
  if (!turn || turn.over) return;
  turn.lost = true;
  finish(turn, now);
}

/**
 * applyPast brings in turns on record: those that were too short to be seen active. It
 * returns the ids of those that are new.
 */
export function applyPast(state, list) {
  state.past = true; // it is known what has ended
  const found = list.filter((t) => t.ended && !state.turns.has(t.turnId));
  for (const of of found) {
    const turn = turnOf(state, of.turnId);
    const endedAt = Date.parse(of.ended);
    Object.assign(turn, { over: true, agentId: of.agentId ?? '', seq: of.events, startedAt: Date.parse(of.started), endedAt, counts: of.outcomes ?? {} });
    if (of.state === 'aborted') turn.abortedAt = endedAt;
  }
  prune(state);
  return found.map((t) => t.turnId);
}

function prune(state) {
  const over = [...state.turns.values()].filter((t) => t.over).sort((a, b) => b.endedAt - a.endedAt);
  for (const turn of over.slice(keepOver)) state.turns.delete(turn.id);
}

/** active are the turns that are not over, oldest first. */
export function active(state) {
  return [...state.turns.values()].filter((t) => !t.over).sort((a, b) => a.startedAt - b.startedAt);
}

/** recent are those that are over, the last one first. */
export function recent(state) {
  return [...state.turns.values()].filter((t) => t.over).sort((a, b) => b.endedAt - a.endedAt);
}

/** asks are all questions that wait, the one that expires first first. */
export function asks(state) {
  return [...state.others, ...[...state.turns.values()].flatMap((t) => [...t.asks.values()])]
    .sort((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
}

/** callsOf are a turn's calls; before its events are here, those that the list names. */
export function callsOf(turn) {
  if (turn.seq > 0 || !turn.summary) return [...turn.calls.values()];
  return turn.summary.currentTools.map((tool) => {
    const call = newCall(tool.toolCallId, tool.toolName, turn.startedAt);
    call.state = tool.state === 'running' ? 'running' : 'queued';
    call.startedAt = tool.startedAt ? Date.parse(tool.startedAt) : 0;
    call.worker = tool.worker ?? '';
    for (const ask of turn.asks.values()) {
      if (ask.toolCallId === tool.toolCallId) beginWait(call.wait, ask.interactionId, beganAt(ask));
    }
    return call;
  });
}
