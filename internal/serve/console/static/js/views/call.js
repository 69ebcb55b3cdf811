// One call on record: its result, and all the evidence that comes with it.

import { h, fill, show } from '../dom.js';
import { icon } from '../icons.js';
import { count, json, printable, readable, size, span } from '../format.js';
import { joined } from '../output.js';
import { iconOf, nameOf, reasonOf, toneOf } from '../status.js';
import { href } from '../route.js';
import { bars, facts, network, receipt, usage, whole } from '../evidence.js';

export function call(root, context, route) {
  return new CallView(root, context, route.ids);
}
call.title = 'Call';

class CallView {
  #context;
  #turnId;
  #id;
  #closed = new AbortController();
  #title = h('h1', { class: 'unseen' }, 'Call'); // until its name is known
  #body = h('div', { class: 'record-body' });
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });

  constructor(root, context, [turnId, id]) {
    this.#context = context;
    this.#turnId = turnId;
    this.#id = id;
    root.append(h('p', { class: 'crumbs' }, h('a', { href: '#/history' }, 'History'), h('span', { 'aria-hidden': 'true' }, '/'),
      h('a', { href: href('history', [turnId]) }, 'its turn')), this.#title, this.#problem, this.#body);
    this.#load();
  }

  async #load() {
    show(this.#problem, false);
    try {
      const result = await this.#context.api.result(this.#turnId, this.#id, this.#closed.signal);
      this.#title.remove();
      fill(this.#body, page(result, this.#context.shell));
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.#fail(error);
    }
  }

  #fail(error) {
    fill(this.#problem, h('strong', {}, error.status === 404 ? 'This call has no result on record yet.' : error.message),
      error.remedy && error.status !== 404 ? h('p', {}, error.remedy) : null,
      h('button', { type: 'button', onclick: () => this.#load() }, 'Try again'));
    show(this.#problem, true);
  }

  close() {
    this.#closed.abort();
  }
}

/** page is all that a result says; also of a call that was tried just now. */
export function page(given, shell) {
  const result = whole(given);
  const tone = toneOf(result.status);
  const why = reasonOf(result.reason, result.status);
  return [
    h('header', { class: 'record-head' }, h('div', {},
      h('h1', {}, printable(result.tool)),
      h('p', { class: 'record-facts' }, h('span', { class: 'chip', data: { tone } }, icon(iconOf[tone]), nameOf(result.status)),
        why ? h('span', {}, printable(why)) : null,
        result.partial ? h('span', { class: 'chip', data: { tone: 'slow' } }, 'partial') : null,
        result.overran ? h('span', { class: 'chip', data: { tone: 'slow' } }, 'over its soft budget') : null,
        h('span', {}, span(result.timing.elapsedMs)), h('span', { class: 'id' }, printable(result.callId)))),
      copyButton(result, shell)),
    result.message ? h('p', { class: 'message', data: { tone } }, printable(result.message)) : null,
    warnings(result),
    h('div', { class: 'record-columns' },
      h('div', { class: 'record-main' }, contents(result), outputs(result), files(result), raw(result)),
      h('div', { class: 'record-side' }, bars(result), usage(result), facts(result), network(result), receipt(result))),
  ];
}

function copyButton(result, shell) {
  return h('button', { type: 'button', onclick: async () => {
    try {
      await navigator.clipboard.writeText(json(result));
      shell.toast('Copied');
    } catch (error) {
      shell.failed('It could not be copied', error);
    }
  } }, icon('copy'), 'Copy as JSON');
}

function warnings(result) {
  if (result.warnings.length === 0) return null;
  return h('ul', { class: 'warnings' }, result.warnings.map((w) => h('li', {}, icon('warn'), h('span', {}, printable(w)))));
}

function block(title, ...children) {
  return h('section', { class: 'block' }, h('h2', {}, title), children);
}

const pre = (text, label) => h('pre', { class: 'output tall', tabindex: 0, role: 'region', 'aria-label': label }, readable(text));

function contents(result) {
  const text = joined(result.content);
  const structured = result.structured === null || result.structured === undefined ? null : block('Structured result', pre(json(result.structured), 'Structured result'));
  const toolError = result.toolError && h('div', { class: 'problem' }, h('strong', {}, printable(result.toolError.message)), result.toolError.stack ? pre(result.toolError.stack, 'Stack') : null);
  return [
    block('Result', toolError, text === '' && !toolError ? h('p', { class: 'muted' }, 'It sent no content.') : null, text === '' ? null : pre(text, 'Result'),
      dropped(result.output.content)),
    structured,
  ];
}

function dropped(of) {
  if (of.droppedBytes === 0) return null;
  return h('p', { class: 'cut' }, `${size(of.droppedBytes)} of ${size(of.seenBytes)} were dropped.`);
}

function outputs(result) {
  return ['stdout', 'stderr'].filter((name) => result.output[name].seenBytes > 0).map((name) => {
    const { head, tail, droppedBytes, seenBytes, spillPath } = result.output[name];
    const gap = droppedBytes > 0 ? `\n… ${size(droppedBytes)} left out …\n` : '';
    return block(name, pre(head + gap + tail, name),
      h('p', { class: 'cut' }, size(seenBytes), droppedBytes > 0 ? `, ${size(droppedBytes)} of it left out` : '', spillPath ? h('span', {}, '; all of it is in ', h('code', {}, printable(spillPath))) : null));
  });
}

function files(result) {
  if (result.files.length === 0) return null;
  return block(`${count(result.files.length, 'file')} in its workspace`, h('ul', { class: 'files' }, result.files.slice(0, 200).map((f) =>
    h('li', {}, h('code', {}, printable(f.path)), h('span', { class: 'muted' }, f.skipped ? printable(f.skipped) : size(f.bytes))))),
  result.filesIncomplete ? h('p', { class: 'cut' }, 'The list is not complete: the warnings say why.') : null);
}

function raw(result) {
  const details = h('details', { class: 'raw' }, h('summary', {}, 'All of it as JSON'));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(pre(json(result), 'JSON'));
  });
  return details;
}
