// Keeps the state true to the daemon: asks for the active turns again and
// again, and reads the events of some of them as they happen. A browser gives
// one host six connections only, for all of its windows together, so these hold
// at most three for streams: where more turns are active, one of them goes round,
// and where more windows are, that of each window rests in between.
// Nothing is lost by that: a stream goes on behind the last event that was seen.

import { seesMore, seesTurns } from './rights.js';
import { active, apply, applyActive, applyOthers, applyPast, keepOver, letGo, lose, skip } from './store.js';
import { Windows } from './windows.js';

const maxStreams = 3; // of all windows
const roundIdleMs = 300; // a stream that goes round moves on after this silence
const roundMs = 2000; // and after this in any case
const pollMs = 1000;
const hiddenPollMs = 5000;
const pollTimeoutMs = 10_000;
const clockMs = 2000; // how far our clock may be from the daemon's, unnoticed
const silenceMs = 45_000; // the daemon sends a heartbeat every 15 s
const firstRetryMs = 500;
const maxRetryMs = 15_000;

const stopped = new Error('the stream is no longer wanted');
const silent = new Error('the stream has gone silent');

export class Feed {
  #api;
  #state;
  #changed;
  #told;
  #visible;
  #windows;
  #share = maxStreams; // streams that this window may hold; below one, for that part of the time
  #resting = false; // until one may go round again
  #streams = new Map(); // turn id: {controller, round}
  #gone = new Set(); // ids of turns whose last events are to be fetched
  #seen = new Map(); // turn id: when its stream was given up
  #notBefore = new Map(); // turn id: when it may be tried again
  #focus = new Set();
  #since = ''; // when the page was opened
  #looking = false; // at what is on record
  #recorded = true; // as far as is known
  #known = false; // who we are, since the connection was made
  #refused = false; // we are nobody, or nobody here
  #failures = 0;
  #wake = () => {};
  #poked = false;
  #ended = false;

  /**
   * api and state are what they are elsewhere; changed(ids) is told which turns
   * have changed, told(status) how the connection is: {kind: live, lost or
   * signedOut or forbidden, retryAt, error}. visible() says whether anybody can look, and
   * windows how many more windows of this browser are looked at.
   */
  constructor({ api, state, changed, told, visible = () => true, windows = new Windows() }) {
    this.#api = api;
    this.#state = state;
    this.#changed = changed;
    this.#told = told;
    this.#visible = visible;
    this.#windows = windows;
  }

  /** run goes on until stop. */
  async run() {
    while (!this.#ended) await this.#sleep(await this.#poll());
  }

  stop() {
    this.#ended = true;
    this.#hide();
    this.poke();
  }

  /** poke asks the daemon now. */
  poke() {
    this.#poked = true;
    this.#wake();
  }

  /** renew asks the daemon now, perhaps for somebody else than before. */
  renew() {
    this.#known = false;
    this.poke();
  }

  /** focus names the turns that are looked at: they are streamed first. */
  focus(ids) {
    this.#focus = new Set(ids);
    this.#reconcile();
  }

  /** look again, when the page is shown, hidden or turned to. */
  look() {
    if (this.#visible()) this.poke();
    else this.#hide();
  }

  #hide() {
    this.#closeAll();
    this.#windows.leave();
  }

  /** divide: what another window needs is let go of, however this one fares. */
  async #divide() {
    if (!this.#visible()) return;
    const before = this.#share;
    this.#share = maxStreams / await this.#windows.count();
    if (this.#share < before) this.#reconcile();
  }

  async #sleep(ms) {
    if (!this.#poked && !this.#ended) {
      await new Promise((resolve) => {
        const timer = ms === Infinity ? null : setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#poked = false;
  }

  /** One question to the daemon; it returns how long to wait for the next, or Infinity: for poke. */
  async #poll() {
    await this.#divide();
    try {
      const signal = AbortSignal.timeout(pollTimeoutMs);
      if (!this.#known) this.#state.me = await this.#api.whoami(signal);
      this.#known = true;
      const { me } = this.#state;
      // What its roles do not show is not asked for: the daemon would put that on record.
      const list = seesTurns(me) ? await this.#api.activeTurns(signal) : [];
      const others = seesMore(me) ? await this.#api.interactions(signal) : [];
      this.#here(list, others);
      this.#past();
      return this.#visible() ? pollMs : hiddenPollMs;
    } catch (error) {
      return this.#away(error);
    }
  }

  /** Turns that are over between two questions are on record alone, if there is one. */
  async #past() {
    if (this.#looking || !this.#recorded || !this.#visible() || !seesTurns(this.#state.me)) return;
    this.#looking = true;
    this.#since ||= new Date(this.#api.now() - clockMs).toISOString();
    try {
      const list = await this.#api.pastTurns({ since: this.#since, limit: keepOver }, AbortSignal.timeout(pollTimeoutMs));
      this.#changed(applyPast(this.#state, list));
    } catch (error) {
      this.#recorded = error.code !== 'no_history'; // what is active is seen all the same
    } finally {
      this.#looking = false;
    }
  }

  #here(list, others) {
    this.#failures = 0;
    this.#refused = false;
    this.#gone = this.#goneOf(list);
    applyOthers(this.#state, others);
    this.#told({ kind: 'live' });
    this.#changed(null);
    this.#reconcile();
  }

  /** The record's past turns are asked for when the page is looked at again. */
  #goneOf(list) {
    const gone = applyActive(this.#state, list, this.#api.now());
    if (this.#visible()) return new Set(gone);
    const kept = new Set(letGo(this.#state, gone));
    for (const id of gone) if (!kept.has(id)) this.#forget(id);
    return kept;
  }

  #away(error) {
    const known = this.#known;
    this.#recorded = true; // perhaps, by another daemon
    this.#known = false; // its roles may be others then
    if (error.status === 401 || error.status === 403) return this.#out(error, known);
    const wait = Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(this.#failures++, 10)) * (0.75 + Math.random() / 2);
    this.#told({ kind: 'lost', retryAt: Date.now() + wait, error });
    return wait;
  }

  /** Each refusal is put on record: who is refused as nobody is so until somebody does something. */
  #out(error, known) {
    this.#refused = true;
    this.#closeAll();
    this.#told({ kind: error.status === 401 ? 'signedOut' : 'forbidden', error });
    return known ? maxRetryMs : Infinity;
  }

  #closeAll() {
    for (const stream of this.#streams.values()) stream.controller.abort(stopped);
  }

  /** The turns to stream, the most wanted first. */
  #wanted() {
    const rank = (t) => (this.#focus.has(t.id) ? 4 : 0) + (t.asks.size > 0 ? 2 : 0) + (this.#gone.has(t.id) ? 1 : 0);
    const now = Date.now();
    return active(this.#state)
      .filter((t) => (this.#notBefore.get(t.id) ?? 0) <= now)
      .sort((a, b) => rank(b) - rank(a) || b.startedAt - a.startedAt);
  }

  #reconcile() {
    if (this.#ended || this.#refused || !this.#visible()) return;
    const wanted = this.#wanted();
    const share = Math.floor(this.#share);
    const held = wanted.length <= share ? wanted : wanted.slice(0, Math.max(0, share - 1));
    const rest = wanted.slice(held.length);
    const keep = new Set(held.map((t) => t.id));
    for (const [id, stream] of this.#streams) {
      if (keep.has(id)) stream.round = false;
      else if (!stream.round) stream.controller.abort(stopped);
    }
    for (const turn of held) this.#open(turn, false);
    if (this.#resting || [...this.#streams.values()].some((s) => s.round)) return;
    rest.sort((a, b) => (this.#seen.get(a.id) ?? 0) - (this.#seen.get(b.id) ?? 0));
    if (rest.length > 0) this.#open(rest[0], true);
  }

  #open(turn, round) {
    if (this.#streams.has(turn.id)) return;
    const stream = { controller: new AbortController(), round, opened: Date.now() };
    this.#streams.set(turn.id, stream);
    this.#read(turn, stream).finally(() => {
      clearTimeout(stream.timer);
      this.#streams.delete(turn.id);
      this.#seen.set(turn.id, Date.now());
      if (turn.over) this.#forget(turn.id);
      if (stream.round && this.#share < 1) this.#rest(Date.now() - stream.opened);
      else this.#reconcile();
    });
  }

  /** rest leaves the connection to the other windows, after it was used for so long. */
  #rest(used) {
    this.#resting = true;
    setTimeout(() => {
      this.#resting = false;
      this.#reconcile();
    }, used / this.#share - used);
  }

  #forget(id) {
    for (const of of [this.#seen, this.#notBefore, this.#gone]) of.delete(id);
  }

  async #read(turn, stream) {
    try {
      this.#expect(stream);
      await this.#api.watch(turn.id, turn.seq, stream.controller.signal, (list) => {
        this.#expect(stream);
        this.#take(turn.id, list);
      });
      this.#endOf(turn);
    } catch (error) {
      if (error === stopped) return;
      if (error.status === 404) this.#lost(turn);
      this.#notBefore.set(turn.id, Date.now() + firstRetryMs);
      this.poke();
    }
  }

  /** expect gives a stream up that is silent or, if it goes round, in time. */
  #expect(stream) {
    clearTimeout(stream.timer);
    const { round } = stream;
    const left = round ? Math.min(roundIdleMs, stream.opened + roundMs - Date.now()) : silenceMs;
    stream.timer = setTimeout(() => {
      if (round && !stream.round) this.#expect(stream);
      else stream.controller.abort(round ? stopped : silent);
    }, left);
  }

  #take(id, list) {
    let poke = false;
    for (const { kind, value } of list) {
      if (kind === 'gap') skip(this.#state, value);
      else if (apply(this.#state, value)) poke ||= kind === 'interaction_request' || kind === 'turn_end';
    }
    if (poke) this.poke();
    if (list.length > 0) this.#changed([id]);
  }

  /** A stream has ended: with the turn or, if that is not on record, with the daemon. */
  #endOf(turn) {
    if (turn.over) return;
    if (this.#gone.has(turn.id)) this.#lost(turn);
    this.#notBefore.set(turn.id, Date.now() + firstRetryMs);
    this.poke();
  }

  #lost(turn) {
    if (!this.#gone.has(turn.id)) return;
    lose(this.#state, turn.id, this.#api.now());
    this.#changed([turn.id]);
  }
}
