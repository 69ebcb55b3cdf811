// Charts: outcomes, latency and memory of the calls on record.

import { h, fill, setText, show } from '../dom.js';
import { count, printable, size, span, stamp } from '../format.js';
import { onWidth } from '../draw.js';
import { bars, columns, dots, histogram, maxTools, ranges as rangePicture } from '../chart.js';
import { byTool, latency, memory, over } from '../statistics.js';
import { toneNames, tones } from '../status.js';
import { href } from '../route.js';
import { ranges } from './history.js';

const maxCalls = 2000;
const maxResults = 80;
const readAtOnce = 3;

export function charts(root, context, route) {
  return new Charts(root, context, route.query);
}
charts.title = 'Charts';

class Charts {
  #context;
  #closed = new AbortController();
  #stops = [];
  #note = h('p', { class: 'muted', role: 'status' });
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });
  #grid = h('div', { class: 'charts' });
  #range = h('select', { 'aria-label': 'Time' }, Object.entries(ranges).map(([key, [name]]) => h('option', { value: key }, name)));

  constructor(root, context, query) {
    this.#context = context;
    this.#range.value = query.range in ranges ? query.range : '24h';
    this.#range.addEventListener('change', () => (location.hash = href('charts', [], { range: this.#range.value })));
    root.append(h('header', { class: 'record-head' }, h('h1', {}, 'Charts'), this.#range), this.#note, this.#problem, this.#grid);
    this.#load();
  }

  #asked = 0;

  async #load() {
    const asked = ++this.#asked;
    const { api } = this.#context;
    const [, back] = ranges[this.#range.value];
    const filter = { limit: maxCalls, since: back > 0 ? new Date(api.now() - back).toISOString() : '' };
    try {
      const all = await api.pastCalls(filter, this.#closed.signal);
      if (asked !== this.#asked) return;
      show(this.#problem, false);
      this.#show(all.filter((c) => c.status !== 'open'), all.length);
    } catch (error) {
      if (asked !== this.#asked || this.#closed.signal.aborted) return;
      fill(this.#problem, h('strong', {}, error.message), error.remedy ? h('p', {}, error.remedy) : null,
        h('button', { type: 'button', onclick: () => this.#load() }, 'Try again'));
      show(this.#problem, true);
    }
  }

  #show(calls, read) {
    this.#clear();
    if (calls.length === 0) {
      setText(this.#note, '');
      fill(this.#grid, h('div', { class: 'empty' }, h('strong', {}, 'No call is on record for this time.'), h('p', {}, 'Choose a longer one, or ', h('a', { href: '#/tools' }, 'try a tool'), '.')));
      return;
    }
    const first = Date.parse(calls.at(-1).queued);
    setText(this.#note, `${read === maxCalls ? 'The last ' : ''}${count(calls.length, 'call')} since ${stamp(first, Date.now())}`);
    const tools = byTool(calls);
    fill(this.#grid, this.#outcomes(calls), this.#latency(calls), this.#byTool(tools), this.#latencyByTool(tools));
    this.#memory(calls);
  }

  /** chart is a figure: a title, a sentence, a picture and the same as a table. */
  #chart(title, words, draw, head, rows, { wide = false, legend = null } = {}) {
    const field = h('div', { class: 'chart-field' });
    this.#stops.push(onWidth(field, (width) => fill(field, draw(width))));
    const table = h('table', {}, h('thead', {}, h('tr', {}, head.map((c) => h('th', { scope: 'col' }, c)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((c, i) => h(i === 0 ? 'th' : 'td', i === 0 ? { scope: 'row' } : {}, c))))));
    return h('figure', { class: wide ? 'chart card wide' : 'chart card' },
      h('figcaption', {}, h('h2', {}, title), h('p', { class: 'muted' }, words)), legend, field,
      h('details', {}, h('summary', {}, 'As a table'), h('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': title }, table)));
  }

  #outcomes(calls) {
    const slots = over(calls);
    const used = tones.filter((t) => slots.some((s) => s.sum[t]));
    const ok = calls.filter((c) => c.status === 'ok').length;
    return this.#chart('Outcomes over time', `${Math.round((ok / calls.length) * 100)} % of ${count(calls.length, 'call')} ended with a complete result.`,
      (width) => columns(width, slots, 'Outcomes over time'),
      ['From', ...used.map((t) => toneNames[t])],
      slots.filter((s) => used.some((t) => s.sum[t])).map((s) => [stamp(s.from, Date.now()), ...used.map((t) => String(s.sum[t] ?? 0))]),
      { wide: true, legend: toneLegend(used) });
  }

  #latency(calls) {
    const l = latency(calls);
    return this.#chart('Latency', `Half of ${count(l.n, 'call')} took under ${span(l.p50)}, 95 % under ${span(l.p95)}, 99 % under ${span(l.p99)}.`,
      (width) => histogram(width, l.buckets, 'Latency: how many calls took how long'),
      ['From', 'To', 'Calls'], l.buckets.map((b) => [span(b.from), b.to === Infinity ? '' : span(b.to), String(b.n)]));
  }

  #latencyByTool(tools) {
    const list = tools.filter((t) => t.ran > 0).slice(0, maxTools);
    if (list.length === 0) return null;
    return this.#chart('Latency by tool', 'From the median (full dot) to the 95th percentile (ring); the stroke is the longest.',
      (width) => rangePicture(width, list, 'Latency by tool'),
      ['Tool', 'p50', 'p95', 'p99', 'Longest'], tools.filter((t) => t.ran > 0).map((t) => [printable(t.tool), span(t.p50), span(t.p95), span(t.p99), span(t.max)]));
  }

  #byTool(tools) {
    const used = tones.filter((t) => tools.some((x) => x.sum[t]));
    const more = tools.length - maxTools;
    return this.#chart('Outcomes by tool', more > 0 ? `The ${maxTools} tools with the most calls; ${more} more are in the table.` : count(tools.length, 'tool'),
      (width) => bars(width, tools.slice(0, maxTools), 'Outcomes by tool'),
      ['Tool', 'Calls', ...used.map((t) => toneNames[t])], tools.map((t) => [printable(t.tool), String(t.n), ...used.map((x) => String(t.sum[x] ?? 0))]),
      { legend: toneLegend(used) });
  }

  /** Memory is in the results alone, so that only the last ones are read. */
  async #memory(calls) {
    const asked = this.#asked;
    const wanted = calls.filter((c) => c.hasResult && c.started).slice(0, maxResults);
    const results = [];
    const next = async () => {
      for (let c = wanted.shift(); c && asked === this.#asked && !this.#closed.signal.aborted; c = wanted.shift()) {
        const result = await this.#context.api.result(c.turnId, c.toolCallId, this.#closed.signal).catch(() => null);
        if (result) results.push(result);
      }
    };
    await Promise.all(Array.from({ length: readAtOnce }, next));
    if (asked !== this.#asked || this.#closed.signal.aborted) return;
    const list = memory(results);
    if (list.length === 0) return;
    this.#grid.append(this.#chart('Memory peaks', `Of the last ${count(results.length, 'call')}; the stroke is the limit.`,
      (width) => dots(width, list.slice(0, maxTools), 'Memory peaks by tool'),
      ['Tool', 'Calls', 'Highest peak', 'Limit'], list.map((t) => [printable(t.tool), String(t.peaks.length), size(Math.max(...t.peaks)), t.limit ? size(t.limit) : 'none'])));
  }

  #clear() {
    for (const stop of this.#stops) stop();
    this.#stops = [];
  }

  moved(route, make) {
    if (make !== charts) return false;
    this.#range.value = route.query.range in ranges ? route.query.range : '24h';
    this.#load();
    return true;
  }

  close() {
    this.#closed.abort();
    this.#clear();
  }
}

function toneLegend(used) {
  return h('ul', { class: 'legend' }, used.map((t) => h('li', {}, h('span', { class: `swatch swatch-${t}` }), toneNames[t])));
}
