// History: turns or calls on record, narrowed by tool, outcome and time.

import { h, Rows, fill, roving, setText, show } from '../dom.js';
import { icon } from '../icons.js';
import { brief, count, head, printable, span, stamp, word } from '../format.js';
import { byTone, iconOf, nameOf, reasonOf, statuses, toneNames, toneOf, tones } from '../status.js';
import { href } from '../route.js';

const pageSize = 50;
const minute = 60_000;
export const ranges = {
  '15m': ['Last 15 minutes', 15 * minute],
  '1h': ['Last hour', 60 * minute],
  '24h': ['Last 24 hours', 1440 * minute],
  '7d': ['Last 7 days', 7 * 1440 * minute],
  all: ['All time', 0],
};

export function history(root, context, route) {
  return new History(root, context, route.query);
}
history.title = 'History';

class History {
  #context;
  #of; // turns or calls
  #list = h('ol', { class: 'records' });
  #rows;
  #rove;
  #items = [];
  #note = h('p', { class: 'muted', role: 'status' });
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });
  #empty = h('div', { class: 'empty', hidden: true });
  #older = h('button', { type: 'button', hidden: true, onclick: () => this.#load(true) }, 'Show older ones');
  #tool = h('input', { type: 'search', list: 'tool-names', placeholder: 'any', autocomplete: 'off', spellcheck: 'false' });
  #names = h('datalist', { id: 'tool-names' });
  #status = h('select', {}, h('option', { value: '' }, 'any'), statuses.map((s) => h('option', { value: s }, nameOf(s))), h('option', { value: 'open' }, 'Open'));
  #range = h('select', {}, Object.entries(ranges).map(([key, [name]]) => h('option', { value: key }, name)));
  #closed = new AbortController();
  #asked = 0;

  constructor(root, context, query) {
    this.#context = context;
    this.#of = query.of === 'calls' ? 'calls' : 'turns';
    this.#tool.value = query.tool ?? '';
    this.#status.value = query.status ?? '';
    this.#range.value = query.range in ranges ? query.range : '24h';
    this.#rows = new Rows(this.#list, (item) => (this.#of === 'turns' ? turnRow(item) : callRow(item)));
    this.#list.classList.add(`of-${this.#of}`);
    root.append(h('header', { class: 'record-head' }, h('h1', {}, 'History'), this.#kinds()), this.#filters(),
      this.#note, this.#problem, this.#empty, this.#list, h('p', { class: 'older' }, this.#older));
    this.#rove = roving(this.#list, '.record');
    this.#load(false);
    this.#loadNames();
  }

  #kinds() {
    const link = (of, name) => h('a', { href: this.#address({ of }), 'aria-current': this.#of === of ? 'true' : null }, name);
    return h('div', { class: 'segments', role: 'group', 'aria-label': 'What is listed' }, link('turns', 'Turns'), link('calls', 'Calls'));
  }

  #address(change = {}) {
    const query = { of: this.#of, tool: this.#tool.value.trim(), status: this.#status.value, range: this.#range.value, ...change };
    return href('history', [], query);
  }

  #filters() {
    const field = (name, control) => h('label', { class: 'filter' }, h('span', {}, name), control);
    const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filters' },
      field('Tool', this.#tool), this.#names, field('Outcome', this.#status), field('Time', this.#range),
      h('button', { type: 'submit' }, 'Show'));
    form.addEventListener('change', () => this.#go());
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      if (this.#address() === location.hash) this.#load(false);
      else this.#go();
    });
    return form;
  }

  #go() {
    location.hash = this.#address();
  }

  /** A change of the filter leaves the form, and what has the focus, in place. */
  moved(route, make) {
    const of = route.query.of === 'calls' ? 'calls' : 'turns';
    if (make !== history || of !== this.#of) return false;
    this.#tool.value = route.query.tool ?? '';
    this.#status.value = route.query.status ?? '';
    this.#range.value = route.query.range in ranges ? route.query.range : '24h';
    this.#load(false);
    return true;
  }

  async #load(more) {
    const asked = ++this.#asked;
    const filter = { tool: this.#tool.value.trim(), status: this.#status.value, limit: pageSize + 1 };
    const [, back] = ranges[this.#range.value];
    if (back > 0) filter.since = new Date(this.#context.api.now() - back).toISOString();
    const last = this.#items.at(-1);
    // The time as it was given: a Date would cut it to milliseconds.
    if (more && last) filter.until = last.started && this.#of === 'turns' ? last.started : last.queued;
    try {
      const ask = this.#of === 'turns' ? this.#context.api.pastTurns : this.#context.api.pastCalls;
      const page = await ask(filter, this.#closed.signal);
      if (asked !== this.#asked) return;
      this.#show(more ? [...this.#items, ...page.slice(0, pageSize)] : page.slice(0, pageSize), page.length > pageSize);
    } catch (error) {
      if (asked === this.#asked && !this.#closed.signal.aborted) this.#fail(error);
    }
  }

  #show(items, more) {
    this.#items = items;
    show(this.#problem, false);
    show(this.#older, more);
    // A row is of one state: what has gone on since has another one.
    this.#rows.sync(items, (i) => [i.turnId, i.toolCallId, i.state, i.status, i.calls, i.started, i.ended].join(' '));
    this.#rove.one();
    const one = this.#of.slice(0, -1);
    setText(this.#note, items.length === 0 ? '' : `${more ? 'The last ' : ''}${count(items.length, one)}`);
    show(this.#empty, items.length === 0);
    const narrowed = this.#tool.value || this.#status.value || this.#range.value !== 'all';
    fill(this.#empty, h('p', {}, h('strong', {}, `No ${one} is on record${narrowed ? ' for this filter' : ''}.`)),
      narrowed ? h('p', {}, h('a', { href: this.#address({ tool: '', status: '', range: 'all' }) }, 'Show all of all time')) : null);
  }

  #fail(error) {
    fill(this.#problem, h('strong', {}, error.message), error.remedy ? h('p', {}, error.remedy) : null,
      h('button', { type: 'button', onclick: () => this.#load(false) }, 'Try again'));
    show(this.#problem, true);
  }

  async #loadNames() {
    try {
      const { tools } = await this.#context.api.tools(this.#closed.signal);
      fill(this.#names, tools.map((t) => h('option', { value: t.name })));
    } catch {
      // The names are a help only.
    }
  }

  key(e) {
    if (e.key !== '/') return false;
    this.#tool.focus();
    return true;
  }

  close() {
    this.#closed.abort();
  }
}

function turnRow(turn) {
  const sum = byTone(turn.outcomes);
  const lasted = turn.ended ? Date.parse(turn.ended) - Date.parse(turn.started) : null;
  const state = turn.state === 'ended' ? null : h('span', { class: 'chip', data: { tone: turn.state === 'open' ? 'open' : 'idle' } }, turn.state === 'open' ? 'open' : 'cancelled');
  const node = h('li', {}, h('a', { class: 'record', tabindex: -1, href: href('history', [turn.turnId]) },
    h('span', { class: 'record-time' }, stamp(Date.parse(turn.started), Date.now())),
    h('span', { class: 'record-name id' }, printable(brief(turn.turnId, 28))),
    h('span', { class: 'record-what' }, share(sum, turn.calls), h('span', { class: 'tallies' },
      tones.filter((t) => sum[t]).map((t) => h('span', { class: 'tally', data: { tone: t } }, `${sum[t]} ${toneNames[t]}`))), state,
      turn.agentId ? h('span', { class: 'record-agent muted' }, word(head(turn.agentId, 60))) : null),
    h('span', { class: 'record-count' }, count(turn.calls, 'call')),
    h('span', { class: 'record-span' }, lasted === null ? '' : span(lasted))));
  return { node, update() {} };
}

/** share is a line that is divided as the outcomes are. */
function share(sum, calls) {
  const whole = h('span', { class: 'share', 'aria-hidden': 'true' });
  for (const tone of tones) {
    if (!sum[tone]) continue;
    const part = h('span', { data: { tone } });
    part.style.flexGrow = String(sum[tone] / Math.max(1, calls));
    whole.append(part);
  }
  return whole;
}

function callRow(call) {
  const tone = toneOf(call.status);
  const why = reasonOf(call.reason, call.status);
  const node = h('li', {}, h('a', { class: 'record', tabindex: -1, data: { tone }, href: href('history', [call.turnId, call.toolCallId]) },
    h('span', { class: 'record-time' }, stamp(Date.parse(call.queued), Date.now())),
    h('span', { class: 'record-name' }, printable(call.toolName)),
    h('span', { class: 'record-what tone' }, icon(iconOf[tone]), nameOf(call.status), why ? h('span', { class: 'muted' }, printable(why)) : null),
    h('span', { class: 'record-count id' }, printable(brief(call.turnId, 10))),
    h('span', { class: 'record-span' }, call.ended && call.started ? span(call.elapsedMs) : '')));
  return { node, update() {} };
}
