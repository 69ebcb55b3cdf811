// What a call's time was spent on, as parts of a time line. Pure.

/** parts are the kinds of segments, in the order of the legend. */
export const parts = { queue: 'Queued', ask: 'Waiting for a human', start: 'Starting', run: 'Running', grace: 'Grace', drain: 'Drain' };

/**
 * segmentsOf a call (of the store), in ms since 1970: [{kind, from, to}]. The
 * result, if there is one, knows more than the events: how long the start and
 * the drain took. An open call goes on to now. Where a human is waited for
 * before the run, that is not part of the queue.
 */
export function segmentsOf(call, result, now) {
  const end = call.endedAt || now;
  const asked = call.asked.map((a) => ({ kind: 'ask', from: a.from, to: a.to || end }));
  const timing = result?.timing;
  const ready = call.startedAt || end; // tool_started says that the start is over
  const begun = Math.max(call.queuedAt, ready - (timing?.startMs ?? 0));
  const list = [...without(asked, call.queuedAt, begun), { kind: 'start', from: begun, to: ready }];
  if (call.startedAt) list.push(...working(call, timing, end));
  return [...list, ...asked].filter((s) => s.to > s.from);
}

/** without gives what of the queue is left between the questions. */
function without(asked, from, to) {
  const list = [];
  for (const a of asked.toSorted((x, y) => x.from - y.from)) {
    list.push({ kind: 'queue', from, to: Math.min(a.from, to) });
    from = Math.max(from, a.to);
  }
  return [...list, { kind: 'queue', from, to }];
}

function working(call, timing, end) {
  const stop = call.stoppingAt && call.stoppingAt < end ? call.stoppingAt : end;
  if (!timing) {
    return [{ kind: 'run', from: call.startedAt, to: stop }, { kind: 'grace', from: stop, to: end }];
  }
  // The times of the result are exact, but not when they began: they end together.
  const drain = Math.min(timing.drainMs, end - call.startedAt);
  const grace = Math.min(timing.graceMs, end - drain - call.startedAt);
  const run = end - drain - grace;
  return [
    { kind: 'run', from: call.startedAt, to: run },
    { kind: 'grace', from: run, to: run + grace },
    { kind: 'drain', from: run + grace, to: end },
  ];
}

/** sumOf adds the segments up by kind. */
export function sumOf(segments) {
  const sum = {};
  for (const s of segments) sum[s.kind] = (sum[s.kind] ?? 0) + s.to - s.from;
  return sum;
}
