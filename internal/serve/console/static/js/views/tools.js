// Tools: the catalogue, what each tool takes, and a form to try it.

import { h, Rows, fill, roving, setText, show } from '../dom.js';
import { icon } from '../icons.js';
import { count, json, printable, span } from '../format.js';
import { href } from '../route.js';
import { Trial } from '../trial.js';

export function tools(root, context, route) {
  return new Tools(root, context, route.ids[0] ?? '');
}
tools.title = 'Tools';

class Tools {
  #context;
  #name;
  #all = [];
  #rows;
  #rove;
  #trial = null;
  #closed = new AbortController();
  #root;
  #filter = h('input', { type: 'search', placeholder: 'Find a tool', 'aria-label': 'Find a tool', autocomplete: 'off', spellcheck: 'false' });
  #list = h('ul', { class: 'tool-list' });
  #note = h('p', { class: 'muted', role: 'status' });
  #detail = h('div', { class: 'tool-detail' });
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });

  constructor(root, context, name) {
    this.#root = root;
    this.#context = context;
    this.#name = name;
    root.append(h('header', { class: 'record-head' }, h('h1', {}, 'Tools'), this.#note), this.#problem,
      h('div', { class: 'tool-columns' }, h('div', { class: 'tool-side' }, this.#filter, this.#list), this.#detail));
    this.#rows = new Rows(this.#list, (tool) => toolRow(tool));
    this.#rove = roving(this.#list, '.tool-link');
    this.#filter.addEventListener('input', () => this.#showList());
    this.#load();
  }

  async #load() {
    try {
      const { tools, problems = [] } = await this.#context.api.tools(this.#closed.signal);
      this.#all = tools.toSorted((a, b) => a.name.localeCompare(b.name));
      show(this.#problem, problems.length > 0);
      fill(this.#problem, h('strong', {}, `${count(problems.length, 'problem')} with what is configured`), h('ul', {}, problems.map((p) => h('li', {}, printable(p)))));
      this.#showList();
      this.#open(this.#name);
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      fill(this.#problem, h('strong', {}, error.message), error.remedy ? h('p', {}, error.remedy) : null,
        h('button', { type: 'button', onclick: () => this.#load() }, 'Try again'));
      show(this.#problem, true);
    }
  }

  #showList() {
    const wanted = this.#filter.value.trim().toLowerCase();
    const list = this.#all.filter((t) => `${t.name} ${t.title ?? ''} ${t.description ?? ''}`.toLowerCase().includes(wanted));
    this.#rows.sync(list, (t) => t.name);
    setText(this.#note, wanted ? `${list.length} of ${count(this.#all.length, 'tool')}` : count(this.#all.length, 'tool'));
    this.#rove.one();
  }

  #open(name) {
    const tool = this.#all.find((t) => t.name === name);
    this.#name = name;
    this.#trial?.close();
    this.#trial = null;
    this.#root.classList.toggle('chosen', name !== '');
    for (const link of this.#list.querySelectorAll('.tool-link')) {
      if (link.dataset.name === name) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
    if (!tool) {
      fill(this.#detail, h('div', { class: 'empty' }, this.#nothing(name)));
      return;
    }
    this.#trial = new Trial(this.#context, tool);
    fill(this.#detail, detail(tool), this.#trial.node);
  }

  #nothing(name) {
    if (this.#all.length === 0) return [h('strong', {}, 'No tool is configured.'), h('p', {}, 'The operator’s configuration file says which tools there are.')];
    if (name !== '') return [h('strong', {}, `There is no tool ${printable(name)}.`), h('p', {}, h('a', { href: '#/tools' }, 'All tools'))];
    return [h('strong', {}, 'Choose a tool'), h('p', {}, 'to see what it takes, and to try it.')];
  }

  moved(route, make) {
    if (make !== tools) return false;
    this.#open(route.ids[0] ?? '');
    if (matchMedia('(max-width: 820px)').matches) scrollTo(0, 0);
    return true;
  }

  tick(time) {
    this.#trial?.tick(time);
  }

  key(e) {
    if (e.key !== '/') return false;
    this.#filter.focus();
    return true;
  }

  close() {
    this.#closed.abort();
    this.#trial?.close();
  }
}

function toolRow(tool) {
  const flag = tool.mode !== 'allow' ? h('span', { class: 'chip', data: { tone: tool.mode === 'ask' ? 'wait' : 'idle' } }, tool.mode) : null;
  const node = h('li', {}, h('a', { class: 'tool-link', tabindex: -1, href: href('tools', [tool.name]), data: { name: tool.name } },
    h('span', { class: 'tool-name' }, printable(tool.name)), flag, h('span', { class: 'tool-about' }, printable(tool.description ?? tool.title ?? ''))));
  return { node, update() {} };
}

/** What a tool says of itself, and what the operator says of it. */
function detail(tool) {
  const claims = [['readOnly', 'read only', 'read and write'], ['destructive', 'destructive', 'not destructive'], ['idempotent', 'idempotent', 'not idempotent'], ['openWorld', 'open world', 'closed world']]
    .filter(([key]) => typeof tool.annotations[key] === 'boolean')
    .map(([key, yes, no]) => h('span', { class: 'chip', data: { tone: key === 'destructive' && tool.annotations[key] ? 'failed' : 'idle' } }, tool.annotations[key] ? yes : no));
  const modes = { allow: 'runs at once', ask: 'a human is asked before each call', deny: 'no call is allowed' };
  const pairs = [
    ['Mode', `${tool.mode}: ${modes[tool.mode] ?? ''}`],
    ['Within a turn', tool.exclusive ? 'exclusive: it runs alone' : 'parallel'],
    ['Timeout', `${tool.timeoutMs === null ? 'infinite' : span(tool.timeoutMs)}${tool.maxTimeoutMs ? `, a call may ask for up to ${span(tool.maxTimeoutMs)}` : ''}`],
    tool.source ? ['Source', printable(tool.source)] : null,
  ].filter(Boolean);
  return h('section', { class: 'card tool-card', 'aria-label': tool.name },
    h('a', { class: 'tool-back', href: '#/tools' }, icon('left'), 'All tools'),
    h('h2', { class: 'tool-title' }, printable(tool.name)), tool.title ? h('p', { class: 'muted' }, printable(tool.title)) : null,
    tool.description ? h('p', { class: 'tool-description' }, printable(tool.description)) : null,
    claims.length > 0 ? h('p', { class: 'claims' }, claims) : null,
    h('dl', { class: 'pairs' }, pairs.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    schema('Schema of the arguments', tool.inputSchema), tool.outputSchema ? schema('Schema of the result', tool.outputSchema) : null);
}

function schema(title, value) {
  return h('details', { class: 'schema' }, h('summary', {}, title), h('pre', { class: 'output', tabindex: 0 }, printable(json(value))));
}
