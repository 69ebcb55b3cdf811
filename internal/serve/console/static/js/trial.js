// Tries a tool: a form of its arguments, a turn of its own, the result.

import { h, fill, setText, show } from './dom.js';
import { timer } from './format.js';
import { formOf, kindOf } from './form.js';
import { waitingWords } from './rights.js';
import { href } from './route.js';
import { page } from './views/call.js';

const timeoutKey = 'dev.toolhost/timeoutMs';

export class Trial {
  #context;
  #tool;
  #form;
  #raw = false;
  #running = null; // {turnId, since} while it does
  #fields = h('div', { class: 'trial-fields' });
  #switch = h('button', { type: 'button', onclick: () => this.#turnRaw() });
  #timeout = h('input', { type: 'text', inputmode: 'decimal', autocomplete: 'off', placeholder: 'as configured', id: 'trial-timeout' });
  #run = h('button', { type: 'submit', class: 'primary' }, 'Run');
  #cancel = h('button', { type: 'button', hidden: true, onclick: () => this.#abort() }, 'Cancel');
  #status = h('p', { role: 'status' });
  #clock = h('span', { 'aria-hidden': 'true' }); // for eyes: a reader would hear each second
  #result = h('div', { class: 'trial-result card', hidden: true });

  constructor(context, tool) {
    this.#context = context;
    this.#tool = tool;
    const form = h('form', { class: 'card trial', 'aria-label': 'Try it', novalidate: true, autocomplete: 'off' },
      h('header', {}, h('h2', {}, 'Try it'), this.#switch), this.#fields,
      h('div', { class: 'trial-actions' },
        h('label', { class: 'filter', for: 'trial-timeout' }, h('span', {}, 'Timeout in seconds'), this.#timeout), this.#run, this.#cancel),
      h('div', { class: 'trial-status' }, this.#status, this.#clock));
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      this.#start();
    });
    this.node = h('div', { class: 'trial-box' }, form, this.#result);
    this.#showForm({});
  }

  #showForm(initial) {
    const schema = this.#tool.inputSchema;
    const simple = kindOf(schema) === 'object';
    show(this.#switch, simple);
    setText(this.#switch, this.#raw ? 'Use the form' : 'Write JSON');
    this.#form = this.#raw || !simple
      ? formOf({ type: 'object', title: 'Arguments' }, { initial })
      : formOf(schema, { initial });
    fill(this.#fields, this.#form.node);
  }

  /** What was written so far goes over, of a form what can be read; JSON that cannot be stays. */
  #turnRaw() {
    const got = this.#form.read();
    if (this.#raw && got.error) {
      got.at.focus();
      return;
    }
    const value = got.value ?? got.rest;
    this.#raw = !this.#raw;
    this.#showForm(value && typeof value === 'object' ? value : {});
  }

  #read() {
    const got = this.#form.read();
    if (got.error) {
      got.at.focus();
      return null;
    }
    const seconds = this.#timeout.value.trim().replace(',', '.');
    const ms = Math.round(Number(seconds) * 1000);
    if (seconds !== '' && !(ms > 0)) {
      setText(this.#status, 'The timeout is not a number of seconds.');
      this.#timeout.focus();
      return null;
    }
    const call = { id: 'trial', tool: this.#tool.name, arguments: got.value ?? {} };
    return seconds === '' ? call : { ...call, meta: { [timeoutKey]: ms } };
  }

  async #start() {
    const call = this.#read();
    if (!call || this.#running) return;
    const { api, feed, shell } = this.#context;
    this.#running = { turnId: '', since: api.now() };
    this.#busy(true);
    try {
      const { turnId } = await api.begin({ agentId: 'console' });
      this.#running.turnId = turnId;
      this.#cancel.disabled = false;
      feed.poke();
      const [result] = await this.#ended(api.run(turnId, [call]), turnId);
      fill(this.#result, page(result, shell));
      show(this.#result, true);
      fill(this.#status, 'It has ended: ', h('a', { href: href('history', [turnId]) }, 'its turn on record'), '.');
    } catch (error) {
      fill(this.#status, h('span', { class: 'field-error' }, error.remedy ? `${error.message}. ${error.remedy}.` : error.message));
    } finally {
      this.#running = null;
      this.#busy(false);
    }
  }

  /** The turn is for this one call, and ends with it. */
  async #ended(results, turnId) {
    try {
      return await results;
    } finally {
      await this.#context.api.end(turnId).catch(() => {}); // it may be over already
    }
  }

  #busy(on) {
    this.#run.disabled = on;
    show(this.#cancel, on);
    this.#cancel.disabled = on; // until there is a turn
    if (on) {
      show(this.#result, false);
      fill(this.#status, this.#words, h('span', {}, ' '), h('a', { href: '#/live' }, 'watch it live'));
    }
    setText(this.#clock, '');
    this.tick(this.#context.api.now());
  }

  #words = h('span');

  tick(time) {
    if (!this.#running) return;
    const { state } = this.#context;
    const turn = state.turns.get(this.#running.turnId);
    const asks = turn?.asks.size > 0;
    setText(this.#words, asks ? `${waitingWords(state.me)}:` : 'Running ·');
    setText(this.#clock, asks ? '' : ` · ${timer(time - this.#running.since)}`);
  }

  async #abort() {
    if (!this.#running?.turnId) return;
    try {
      await this.#context.api.abort(this.#running.turnId);
      this.#context.shell.toast('Turn cancelled');
    } catch (error) {
      this.#context.shell.failed('It could not be cancelled', error);
    }
  }

  /** A call that runs goes on: it is to be seen under Live. */
  close() {}
}
