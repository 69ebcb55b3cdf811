// The daemon's HTTP API. Every function throws a Refusal if the daemon says no,
// and a Lost if it cannot be reached.

import { approvalDigits, askDigits, schemaDigits, withDigits } from './exact.js';
import * as session from './session.js';
import { EventParser } from './sse.js';

/** Refusal is an error that the daemon has answered with. */
export class Refusal extends Error {
  constructor(status, { code = 'unknown', message = `the daemon answered with status ${status}`, remedy = '' } = {}) {
    super(message);
    Object.assign(this, { status, code, remedy });
  }
}

/** Lost: the daemon cannot be reached, or has gone in the middle. */
export class Lost extends Error {}

const path = (parts, ...ids) => parts.reduce((all, part, i) => all + encodeURIComponent(ids[i - 1]) + part);

/** The clock of the daemon against ours, in ms; known to the second. */
let skew = 0;

/** now is the daemon's time. */
export const now = () => Date.now() + skew;

function noteClock(response) {
  const theirs = Date.parse(response.headers.get('Date') ?? '');
  if (Number.isNaN(theirs)) return;
  const off = theirs + 500 - Date.now();
  skew = Math.abs(off) > 2000 ? off : 0;
}

async function send(method, url, { body, signal, headers = {} } = {}) {
  const options = { method, signal, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' };
  if (session.token() !== null) headers.Authorization = `Bearer ${session.token()}`;
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    throw signal?.aborted ? signal.reason : new Lost(error.message);
  }
  noteClock(response);
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  try {
    return new Refusal(response.status, (await response.json()).error);
  } catch {
    return new Refusal(response.status);
  }
}

async function call(method, url, options) {
  const response = await send(method, url, options);
  try {
    return options?.read ? options.read(await response.text()) : await response.json();
  } catch (error) {
    throw options?.signal?.aborted ? options.signal.reason : new Lost(error.message);
  }
}

const get = (url, signal, read) => call('GET', url, { signal, read });
const post = (url, body, signal, read) => call('POST', url, { body, signal, read });

// What tools take and give keeps all its digits; the rest can be reckoned with.
const resultDigits = (plain, exact) => Object.assign(plain, { content: exact.content, structured: exact.structured });
const readResult = (text) => withDigits(text, resultDigits);
const readResults = (text) => withDigits(text, (plain, exact) => plain.results.forEach((r, i) => resultDigits(r, exact.results[i])));
const readAsks = (text) => withDigits(text, (plain, exact) => plain.interactions.forEach((ask, i) => askDigits(ask, exact.interactions[i])));
const readActive = (text) => withDigits(text, (plain, exact) =>
  plain.turns.forEach((turn, i) => turn.pendingInteractions.forEach((ask, k) => askDigits(ask, exact.turns[i].pendingInteractions[k]))));
const readApprovals = (text) => withDigits(text, approvalDigits);
const readTools = (text) => withDigits(text, schemaDigits);
const readEvent = (text) => withDigits(text, (plain, exact) => (plain.content = exact.content));

export const health = (signal) => get('/api/health', signal);
/** tools gives {tools, problems}: why configured ones are missing. */
export const tools = (signal) => get('/api/tools', signal, readTools);
export const activeTurns = async (signal) => (await get('/api/turns/active', signal, readActive)).turns;

export const begin = (spec) => post('/api/turns', spec);
export const end = (turnId) => post(path`/api/turns/${turnId}/end`);
export const abort = (turnId) => post(path`/api/turns/${turnId}/abort`);
export const abortCall = (turnId, callId) => post(path`/api/turns/${turnId}/abort-tool/${callId}`);
export const answer = (id, body) => post(path`/api/interactions/${id}/answer`, body);
export const interactions = async (signal) => (await get('/api/interactions', signal, readAsks)).interactions;
export const approvals = async (signal) => (await get('/api/approvals', signal, readApprovals)).approvals;
export const revokeApproval = (id) => post(path`/api/approvals/${id}/revoke`);
export const login = (link) => post('/api/login', { link });
export const whoami = (signal) => get('/api/whoami', signal);
export const logout = () => post('/api/logout');

function query(filter) {
  const pairs = Object.entries(filter).filter(([, value]) => value !== '' && value !== undefined);
  return pairs.length === 0 ? '' : '?' + new URLSearchParams(pairs);
}

export const pastTurns = async (filter, signal) => (await get('/api/history/turns' + query(filter), signal)).turns;
export const pastCalls = async (filter, signal) => (await get('/api/history/calls' + query(filter), signal)).calls;
export const result = (turnId, callId, signal) => get(path`/api/history/turns/${turnId}/calls/${callId}`, signal, readResult);

/** replay gives a turn's events on record behind a seq: the first so many. */
export async function replay(turnId, after, most, signal) {
  const response = await send('GET', path`/api/history/turns/${turnId}/events` + query({ after: after > 0 ? after : '' }), { signal });
  const events = [];
  for await (const line of lines(response.body, signal)) {
    events.push(JSON.parse(line));
    if (events.length === most) break;
  }
  return events;
}

async function* lines(body, signal) {
  let rest = '';
  for await (const piece of pieces(body, signal)) {
    const all = (rest + piece).split('\n');
    rest = all.pop();
    yield* all;
  }
  if (rest !== '') throw new Lost('the replay broke off');
}

async function* pieces(body, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw signal?.aborted ? signal.reason : new Lost(error.message);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * run asks for a stream: that has a heartbeat, and a proxy gives an answer up that is
 * silent for long. Where no stream is left, as these may all be the feed's, it does without.
 */
export async function run(turnId, calls, signal) {
  const url = path`/api/turns/${turnId}/calls`;
  const headers = { Accept: 'text/event-stream' };
  let response;
  try {
    response = await send('POST', url, { body: { calls }, signal, headers });
  } catch (error) {
    if (!['quota_exceeded', 'busy'].includes(error.code)) throw error;
    return (await post(url, { calls }, signal, readResults)).results;
  }
  const parser = new EventParser();
  for await (const piece of pieces(response.body, signal)) {
    for (const { kind, data } of parser.push(piece)) {
      if (kind === 'results') return readResults(data).results;
      if (kind === 'error') throw new Refusal(response.status, JSON.parse(data).error);
    }
  }
  throw new Lost('the answer broke off');
}

/**
 * watch passes on a turn's events behind the one with the seq after, in lists:
 * {kind, value} each. It returns when the turn is over.
 */
export async function watch(turnId, after, signal, show) {
  const headers = { Accept: 'text/event-stream' };
  if (after > 0) headers['Last-Event-ID'] = String(after);
  const response = await send('GET', path`/api/turns/${turnId}/events`, { signal, headers });
  const parser = new EventParser();
  for await (const piece of pieces(response.body, signal)) {
    const events = parser.push(piece).filter((e) => e.kind !== 'error'); // which ends the stream: the rest cannot be read
    show(events.map((e) => ({ kind: e.kind, value: readEvent(e.data) })));
  }
}
