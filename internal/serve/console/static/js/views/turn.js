// One turn on record: its calls on a time line, and its events played again.

import { h, fill, roving, setText, show } from '../dom.js';
import { icon } from '../icons.js';
import { brief, clock, count, line, printable, span, stamp } from '../format.js';
import { Replay, words } from '../replay.js';
import { Waterfall, maxRows } from '../waterfall.js';
import { byTone, toneNames, tones } from '../status.js';
import { href } from '../route.js';

const maxShown = 250; // events that are drawn at once
const maxResults = 60; // results that are read for the waterfall
const readAtOnce = 3;
const speeds = [0.5, 1, 2, 5, 10, 50, 100];
const wantedPlayMs = 15_000;
const againMs = 1000;

export function turn(root, context, route) {
  return new TurnView(root, context, route.ids[0]);
}
turn.title = 'Turn';

class TurnView {
  #context;
  #id;
  #replay;
  #fall;
  #results = new Map();
  #at = Infinity; // the time that is shown; Infinity is the end
  #playing = null; // {last} while it plays
  #closed = new AbortController();
  #loading = false;
  #loadedAt = 0;
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });
  #title = h('h1', {}, 'Turn');
  #facts = h('p', { class: 'record-facts' });
  #cancel = h('button', { type: 'button', hidden: true, onclick: () => this.#abort() }, 'Cancel turn');
  #play = h('button', { type: 'button', class: 'primary play', onclick: () => this.#toggle() });
  #slider = h('input', { type: 'range', min: 0, max: 1000, step: 1, value: 1000, 'aria-label': 'Time of the replay' });
  #time = h('span', { class: 'play-time' }); // no output: readers would hear each frame
  #speed = h('select', { 'aria-label': 'Speed' }, speeds.map((x) => h('option', { value: x }, `${x}×`)));
  #events = h('ol', { class: 'events', tabindex: 0, 'aria-label': 'Events, the last one first' });
  #eventsNote = h('p', { class: 'muted' });
  #more = h('p', { class: 'muted', hidden: true });
  #body;

  constructor(root, context, id) {
    this.#context = context;
    this.#id = id;
    this.#replay = new Replay(id);
    this.#fall = new Waterfall(id);
    this.#body = h('div', { class: 'record-body', hidden: true }, this.#player(),
      h('section', { class: 'card fall-card', 'aria-label': 'Calls' }, this.#fall.node, this.#more),
      h('section', { class: 'events-card', 'aria-label': 'Events' }, h('h2', {}, 'Events'), this.#eventsNote, this.#events));
    root.append(h('p', { class: 'crumbs' }, h('a', { href: '#/history' }, 'History')),
      h('header', { class: 'record-head' }, h('div', {}, this.#title, this.#facts), this.#cancel), this.#problem, this.#body);
    this.#rove = roving(this.#fall.node, '.fall-row');
    this.#load();
  }

  #rove;

  #player() {
    this.#slider.addEventListener('input', () => {
      this.#stop();
      this.#seek(this.#timeOf(Number(this.#slider.value)));
    });
    const step = (name, pick, label) => h('button', { type: 'button', class: 'square', 'aria-label': label, title: label, onclick: () => {
      this.#stop();
      this.#seek(pick());
    } }, icon(name));
    return h('div', { class: 'player card', role: 'group', 'aria-label': 'Replay' }, this.#play,
      step('left', () => this.#replay.before(Math.min(this.#at, this.#replay.to)), 'Back to the event before'),
      step('right', () => this.#replay.after(Math.min(this.#at, this.#replay.to)), 'On to the next event'),
      this.#slider, this.#time, this.#speed);
  }

  async #load() {
    if (this.#loading) return;
    this.#loading = true;
    this.#loadedAt = Date.now();
    try {
      // One more than there is room for says that there are more.
      const events = await this.#context.api.replay(this.#id, this.#replay.lastSeq, this.#replay.room + 1, this.#closed.signal);
      const first = this.#replay.length === 0;
      this.#replay.add(events);
      const { turn } = this.#replay.seek(Infinity);
      this.#replay.extend(turn.over || !this.#context.state.turns.has(this.#id) ? 0 : this.#context.api.now());
      if (first) this.#setSpeed();
      show(this.#problem, false);
      show(this.#body, true);
      this.#listed = this.#context.state.turns.has(this.#id);
      this.#showWhole();
      this.#readResults();
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#fail(error);
    } finally {
      this.#loading = false;
    }
  }

  #listed = false; // as a turn that is active or has just ended, when it was read

  #fail(error) {
    fill(this.#problem, h('strong', {}, error.message), error.remedy ? h('p', {}, error.remedy) : null,
      h('button', { type: 'button', onclick: () => this.#load() }, 'Try again'));
    show(this.#problem, true);
  }

  /** It takes about as long to watch whatever the turn took. */
  #setSpeed() {
    const whole = this.#replay.to - this.#replay.from;
    this.#speed.value = String(speeds.find((x) => whole / x <= wantedPlayMs) ?? speeds.at(-1));
  }

  #showWhole() {
    const { turn } = this.#replay.seek(Infinity);
    this.#whole = turn;
    this.#calls = [...turn.calls.values()];
    this.#showHead(turn);
    this.#drawFall();
    show(this.#more, this.#calls.length > maxRows);
    setText(this.#more, `${count(this.#calls.length - maxRows, 'more call')} not drawn here: see them under History`);
    this.#seek(this.#at);
  }

  #whole = null;
  #calls = [];

  #drawFall() {
    const { from, to } = this.#replay;
    this.#fall.show(this.#calls, { from, to: Math.max(to, from + 1), now: to }, this.#results);
    this.#rove.one();
  }

  #showHead(turn) {
    setText(this.#title, printable(turn.agentId || 'Turn'));
    // Its end may lie behind the events that are kept.
    const known = this.#context.state.turns.get(this.#id);
    const over = turn.over || known?.over;
    const state = over ? (turn.abortedAt || known?.abortedAt ? 'aborted' : 'ended') : 'open';
    const sum = byTone(turn.counts);
    const parts = [h('span', { class: 'chip', data: { tone: { aborted: 'idle', ended: 'ok', open: 'open' }[state] } }, state),
      h('span', { class: 'id' }, printable(turn.id)), h('span', {}, `${stamp(this.#replay.from, Date.now())}, ${span(this.#replay.to - this.#replay.from)}`),
      turn.sessionId ? h('span', {}, `session ${printable(brief(turn.sessionId))}`) : null,
      turn.parentId ? h('a', { href: href('history', [turn.parentId]) }, 'its parent') : null,
      h('span', {}, count(this.#calls.length, 'call')),
      tones.filter((t) => sum[t]).map((t) => h('span', { class: 'tally', data: { tone: t } }, `${sum[t]} ${toneNames[t]}`))];
    fill(this.#facts, parts);
    show(this.#cancel, known && !over);
  }

  /** Exact times of the start and the drain are in the results. */
  async #readResults() {
    const missing = this.#calls.filter((c) => c.startedAt && c.endedAt && !this.#results.has(c.id)).slice(0, maxResults - this.#results.size);
    const next = async () => {
      for (let call = missing.shift(); call && !this.#closed.signal.aborted; call = missing.shift()) {
        try {
          this.#results.set(call.id, await this.#context.api.result(this.#id, call.id, this.#closed.signal));
        } catch {
          this.#results.set(call.id, null); // the events will do
        }
      }
    };
    if (missing.length === 0) return;
    await Promise.all(Array.from({ length: readAtOnce }, next));
    if (!this.#closed.signal.aborted) this.#drawFall();
  }

  #timeOf(value) {
    if (value >= 1000) return Infinity;
    return this.#replay.from + ((this.#replay.to - this.#replay.from) * value) / 1000;
  }

  #seek(time) {
    const { from, to } = this.#replay;
    this.#at = time >= to ? Infinity : time;
    const shown = Math.min(time, to);
    const { turn, count: n } = this.#replay.seek(shown);
    this.#fall.at(shown, turn.calls);
    const value = to > from ? Math.round(((shown - from) / (to - from)) * 1000) : 1000;
    if (Number(this.#slider.value) !== value) this.#slider.value = String(value);
    this.#slider.setAttribute('aria-valuetext', `${span(shown - from)} of ${span(to - from)}`);
    setText(this.#time, `${span(shown - from)} / ${span(to - from)}`);
    this.#showEvents(n);
    this.#showPlay();
  }

  #showEvents(n) {
    const key = `${n} of ${this.#replay.length} ${this.#replay.cut}`;
    if (key === this.#eventsShown) return;
    this.#eventsShown = key;
    const list = this.#replay.last(n, maxShown);
    const left = n - list.length;
    setText(this.#eventsNote, `${n} of ${count(this.#replay.length, 'event')}${left > 0 ? `, the last ${list.length} of them here` : ''}${this.#replay.cut ? '; the turn has more than can be read here' : ''}`);
    fill(this.#events, list.toReversed().map((e) => this.#eventRow(e)));
  }

  #eventRow(e) {
    return h('li', { data: { kind: e.kind.replace(/_.*/, '').toLowerCase() } },
      h('time', { title: clock(Date.parse(e.time)) }, `+${span(Date.parse(e.time) - this.#replay.from)}`),
      h('span', { class: 'event-kind' }, e.kind), h('span', { class: 'event-tool' }, printable(e.toolName ?? '')),
      h('span', { class: 'event-words' }, line(words(e), 160)));
  }

  #eventsShown = '';

  #toggle() {
    if (this.#playing) {
      this.#stop();
      return;
    }
    if (this.#at === Infinity) this.#seek(this.#replay.from);
    this.#playing = { last: performance.now() };
    this.#showPlay();
    requestAnimationFrame((t) => this.#step(t));
  }

  #step(now) {
    if (!this.#playing || this.#closed.signal.aborted) return;
    const passed = Math.max(0, now - this.#playing.last);
    this.#playing.last = now;
    this.#seek(this.#at + passed * Number(this.#speed.value));
    if (this.#at === Infinity) this.#stop();
    else requestAnimationFrame((t) => this.#step(t));
  }

  #stop() {
    this.#playing = null;
    this.#showPlay();
  }

  #showPlay() {
    const words = this.#playing ? 'Pause' : 'Play';
    if (this.#play.textContent !== words) fill(this.#play, icon(this.#playing ? 'pause' : 'play'), words);
  }

  async #abort() {
    try {
      await this.#context.api.abort(this.#id);
      this.#context.shell.toast('Turn cancelled');
    } catch (error) {
      this.#context.shell.failed('The turn could not be cancelled', error);
    }
  }

  /** An open turn grows. */
  update(ids) {
    const gone = this.#listed && !this.#context.state.turns.has(this.#id); // and over, while nobody looked
    if (!(ids.has(this.#id) || gone) || this.#playing || this.#loading || !this.#whole) return;
    if (this.#replay.cut) {
      this.#showHead(this.#whole);
      return;
    }
    if (this.#whole.over || Date.now() - this.#loadedAt < againMs) {
      this.#stale = !this.#whole.over;
      return;
    }
    this.#load();
  }

  #stale = false;

  tick() {
    if (this.#stale && Date.now() - this.#loadedAt >= againMs && !this.#loading && !this.#playing) {
      this.#stale = false;
      this.#load();
    }
  }

  key(e) {
    if (e.key !== ' ' || document.activeElement?.matches('button, a, select, input')) return false;
    this.#toggle();
    return true;
  }

  close() {
    this.#closed.abort();
    this.#fall.close();
  }
}
