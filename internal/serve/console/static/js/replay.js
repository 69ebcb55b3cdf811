// Plays a turn's events again: the state as it was at any moment. Pure.

import { span } from './format.js';
import { apply, createState, turnOf } from './store.js';

/** maxEvents bounds what is kept of one turn, which may go on for days. */
export const maxEvents = 50_000;

export class Replay {
  cut = false; // there are more events than are kept
  #id;
  #events = [];
  #times = [];
  #state = createState(Infinity); // of all calls: there are only so many events
  #until = 0;
  #at = 0; // how many events are in the state

  constructor(turnId) {
    this.#id = turnId;
    turnOf(this.#state, turnId);
  }

  /** room is for so many further events. */
  get room() {
    return maxEvents - this.#events.length;
  }

  /** add brings in the events that have come since, as long as there is room. */
  add(events) {
    for (const e of events) {
      if (e.seq <= this.lastSeq) continue;
      this.cut = this.room === 0;
      if (this.cut) return;
      this.#events.push(e);
      // Clocks may be set back: the line goes on all the same.
      this.#times.push(Math.max(Date.parse(e.time), this.#times.at(-1) ?? -Infinity));
    }
  }

  get lastSeq() {
    return this.#events.at(-1)?.seq ?? 0;
  }

  get from() {
    return this.#times[0] ?? 0;
  }

  /** to is the time of the last event, or later where the turn goes on. */
  get to() {
    return Math.max(this.#times.at(-1) ?? 0, this.#until);
  }

  /** extend: the turn is open, and it is this late. */
  extend(time) {
    this.#until = time;
  }

  get length() {
    return this.#events.length;
  }

  /** seek gives the turn as it was at a time, and how many events led to it. */
  seek(time) {
    const n = upTo(this.#times, time);
    if (n < this.#at) {
      this.#state = createState(Infinity);
      turnOf(this.#state, this.#id);
      this.#at = 0;
    }
    while (this.#at < n) apply(this.#state, this.#events[this.#at++]);
    return { turn: turnOf(this.#state, this.#id), count: n };
  }

  /** last are the events before the nth, at most so many, the newest last. */
  last(n, most) {
    return this.#events.slice(Math.max(0, n - most), n);
  }

  /** after and before are the times of the next and the previous event. */
  after(time) {
    return this.#times[upTo(this.#times, time)] ?? this.to;
  }

  before(time) {
    return this.#times.findLast((t) => t < time) ?? this.from;
  }
}

/** upTo counts the times that are not over a time, in a sorted list. */
function upTo(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** words say in one line what an event is about. */
export function words(e) {
  switch (e.kind) {
    case 'tool_progress':
      return [e.fraction !== undefined ? `${Math.round(e.fraction * 100)} %` : '', e.message ?? ''].filter(Boolean).join(' ') || `still running after ${span(e.elapsedMs)}`;
    case 'tool_output':
      return `${e.stream ?? 'content'}: ${e.content?.text ?? e.content?.type ?? ''}`;
    case 'tool_log':
      return e.message ?? '';
    case 'tool_placed':
      return e.worker ? `worker ${e.worker}` : 'this machine';
    case 'tool_started':
      return e.timeoutMs ? `timeout ${span(e.timeoutMs)}` : '';
    case 'tool_timeout':
      return `after ${span(e.timeoutMs)}`;
    case 'tool_finished':
    case 'tool_failed':
      return [e.status, e.reason, e.display].filter(Boolean).join(' · ');
    case 'interaction_pending':
      return e.pending ? 'begins to wait' : 'no longer waits';
    case 'interaction_request':
      return `${e.interactionKind}: ${e.prompt ?? ''}`;
    case 'turn_start':
      return [e.agentId, e.sessionId].filter(Boolean).join(' · ');
  }
  return [e.reason, e.decider, e.outcome && `${e.outcome}${e.by ? ` by ${e.by}` : ''}`].filter(Boolean).join(' · ');
}
