// A turn's calls as a waterfall: a line each, drawn over one axis of time.

import { h, Rows, fill, onlyChanged } from './dom.js';
import { s, onWidth, timeTicks } from './draw.js';
import { icon } from './icons.js';
import { printable, span } from './format.js';
import { parts, segmentsOf, sumOf } from './segments.js';
import { iconOf, nameOf, toneOf } from './status.js';
import { href } from './route.js';

const rowPx = 26;
const minPartPx = 1.5;
export const maxRows = 200;

export class Waterfall {
  #turnId;
  #axis = h('div', { class: 'fall-axis' });
  #list = h('ol', { class: 'fall-rows' });
  #head = h('div', { class: 'fall-head', 'aria-hidden': 'true' });
  #rows;
  #width = 0;
  #scale = { from: 0, to: 1, now: 1 };
  #calls = [];
  #results = new Map();
  #stop;

  constructor(turnId) {
    this.#turnId = turnId;
    this.#rows = new Rows(this.#list, () => this.#row());
    this.node = h('div', { class: 'fall' }, legend(),
      h('div', { class: 'fall-field' }, this.#axis, this.#list, h('div', { class: 'fall-over', 'aria-hidden': 'true' }, this.#head)));
    this.#stop = onWidth(this.#axis, (width) => {
      this.#width = width;
      this.#draw();
    });
  }

  close() {
    this.#stop();
  }

  /** show draws calls on a line from a time to another; results: by call id. */
  show(calls, scale, results) {
    this.#calls = calls.slice(0, maxRows);
    this.#scale = scale;
    this.#results = results;
    this.#draw();
  }

  /** at puts the head of the replay to a time; calls are as they were then. */
  at(time, callsThen) {
    const part = (time - this.#scale.from) / (this.#scale.to - this.#scale.from || 1);
    this.#head.style.setProperty('--part', Math.min(1, Math.max(0, part)).toFixed(5));
    this.#head.parentNode.classList.toggle('at-end', part >= 1);
    for (const call of this.#calls) this.#rows.get(call.id)?.asItWas(callsThen.get(call.id));
  }

  #x(time) {
    const { from, to } = this.#scale;
    return ((time - from) / (to - from || 1)) * this.#width;
  }

  #draw() {
    if (this.#width === 0) return;
    this.#drawAxis();
    this.#rows.sync(this.#calls, (c) => c.id);
  }

  #drawAxis() {
    const whole = this.#scale.to - this.#scale.from;
    this.ticks = timeTicks(whole, Math.max(2, Math.floor(this.#width / 90)));
    const labels = this.ticks.map((t) => {
      const x = this.#x(this.#scale.from + t);
      const last = x > this.#width - 40;
      return s('text', { x: last ? x - 3 : x + 3, y: 14, class: 'axis-text', 'text-anchor': last ? 'end' : 'start' }, t === 0 ? '0' : span(t));
    });
    fill(this.#axis, s('svg', { width: this.#width, height: 20, 'aria-hidden': 'true' }, this.#grid(20), labels));
  }

  #grid(height) {
    return this.ticks.map((t) => {
      const x = Math.round(this.#x(this.#scale.from + t)) + 0.5;
      return s('line', { x1: x, x2: x, y1: 0, y2: height, class: 'grid-line' });
    });
  }

  #row() {
    const mark = h('span', { class: 'fall-mark' });
    const name = h('span', { class: 'fall-name' });
    const track = h('div', { class: 'fall-track' });
    const spent = h('span', { class: 'unseen' });
    const link = h('a', { class: 'fall-row', tabindex: -1 }, mark, name, track, spent);
    const node = h('li', {}, link);
    const setMark = onlyChanged((tone) => {
      link.dataset.tone = tone;
      fill(mark, icon(iconOf[tone] ?? 'dots'));
    });
    return {
      node,
      update: (call) => {
        link.href = href('history', [this.#turnId, call.id]);
        name.textContent = printable(call.tool);
        name.title = printable(`${call.tool} · ${call.id}`);
        const segments = segmentsOf(call, this.#results.get(call.id), this.#scale.now);
        spent.textContent = `, ${call.endedAt ? nameOf(call.status) : 'under way'}: ${inWords(segments)}`;
        track.title = inWords(segments);
        fill(track, this.#bars(call, segments));
        setMark(call.endedAt ? toneOf(call.status) : 'open');
      },
      asItWas(was) {
        node.dataset.then = !was ? 'none' : was.endedAt ? 'ended' : was.startedAt ? 'running' : 'queued';
        setMark(was?.endedAt ? toneOf(was.status) : 'open');
      },
    };
  }

  #bars(call, segments) {
    const rects = segments.map(({ kind, from, to }) => {
      const x = this.#x(from);
      const width = Math.max(minPartPx, this.#x(to) - x);
      const thin = kind === 'queue' || kind === 'drain';
      return s('rect', { x, width, y: thin ? 11 : 7, height: thin ? 4 : 12, rx: thin ? 1 : 2.5, class: `part part-${kind}` });
    });
    return s('svg', { width: this.#width, height: rowPx, 'aria-hidden': 'true' }, this.#grid(rowPx), rects);
  }
}

function inWords(segments) {
  return Object.entries(sumOf(segments)).map(([kind, ms]) => `${parts[kind].toLowerCase()} ${span(ms)}`).join(', ');
}

function legend() {
  const swatch = (kind) => s('svg', { width: 16, height: 12, 'aria-hidden': 'true' },
    s('rect', { x: 0, y: kind === 'queue' || kind === 'drain' ? 4 : 1, width: 16, height: kind === 'queue' || kind === 'drain' ? 4 : 10, rx: 2, class: `part part-${kind}` }));
  return h('ul', { class: 'legend', 'aria-label': 'Legend' }, Object.entries(parts).map(([kind, name]) => h('li', {}, swatch(kind), name)));
}
