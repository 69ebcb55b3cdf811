// One question that waits for a human, with the way to answer it.

import { h, fill, setData, setText, show } from './dom.js';
import { icon } from './icons.js';
import { brief, json, printable, timer } from './format.js';
import { kindOf } from './status.js';
import { formOf } from './form.js';
import { mayAnswer } from './rights.js';
import { href } from './route.js';
import { now } from './api.js';

// A card may come to stand where somebody is about to press: it takes no answer in
// its first moment there.
const armMs = 400;

export class AskCard {
  #context;
  #ask;
  #form = null;
  #left = h('span', { class: 'ask-left' });
  #bar = h('span', { class: 'ask-bar', 'aria-hidden': 'true' });
  #error = h('p', { class: 'field-error', role: 'alert', hidden: true });
  #buttons = [];
  #arming = null; // the timer, while it takes no answer
  #sending = false;

  constructor(context, ask) {
    this.#context = context;
    this.#ask = ask;
    const id = 'ask-' + Math.random().toString(36).slice(2);
    this.node = h('form', { class: 'ask', 'aria-labelledby': id, tabindex: -1, novalidate: true, autocomplete: 'off', data: { ask: ask.interactionId, kind: ask.kind } },
      h('header', {}, h('h3', { id }, h('span', { class: 'chip', data: { tone: ask.kind === 'confirm' ? 'failed' : 'wait' } }, kindOf(ask.kind)), ' ',
        h('span', { class: 'ask-tool' }, printable(ask.host && ask.toolName ? 'The host, about ' + ask.toolName : ask.toolName || 'The host'))), this.#left),
      this.#bar,
      h('p', { class: 'ask-prompt' }, printable(ask.prompt)),
      argumentsOf(ask), policyOf(ask), mayAnswer(context.state.me, ask) ? [this.#fields(), this.#error, this.#actions()] : h('p', { class: 'ask-from' }, 'Somebody else with the role approve, or an administrator, can answer it.'),
      h('p', { class: 'ask-from' }, ask.owner ? `${printable(ask.owner)}, ` : null, 'turn ', this.#turn()));
    this.node.addEventListener('submit', (e) => {
      e.preventDefault();
      this.#send();
    });
    this.arm();
    this.tick(now());
  }

  update() {}

  /** The turn has a page if it is shown to us. */
  #turn() {
    const { turnId } = this.#ask;
    const name = printable(brief(turnId));
    return this.#context.state.turns.has(turnId) ? h('a', { href: href('history', [turnId]) }, name) : name;
  }

  /** Of what wants a value, a form; of yes or no, nothing. */
  #fields() {
    const { schema, secret, kind } = this.#ask;
    const hidden = secret || kind === 'password';
    if (!schema && !hidden) return null;
    this.#form = formOf(schema ?? { type: 'string' }, { secret: hidden, name: hidden ? 'Secret' : 'Answer', initial: this.#ask.default });
    return h('div', { class: 'ask-fields' }, this.#form.node);
  }

  #actions() {
    const { kind } = this.#ask;
    const yes = this.#form ? 'Send' : { confirm: 'Confirm', device_code: 'Done', escalation: 'Done' }[kind] ?? 'Approve';
    const button = (words, props) => {
      const node = h('button', props, words);
      this.#buttons.push(node);
      return node;
    };
    return h('div', { class: 'ask-actions' },
      button(yes, { type: 'submit', class: kind === 'confirm' ? 'danger' : 'primary' }),
      ...this.#always(button),
      button('Deny', { type: 'button', class: 'deny', onclick: () => this.#answer({}, 'Denied') }));
  }

  /** What a yes can be for beside this call: the turn at once, more by a choice. */
  #always(button) {
    const { always, owner } = this.#ask;
    if (!always || this.#form) return [];
    const names = { turn: 'in this turn', session: 'in this session', identity: `for ${printable(owner || 'this identity')}` };
    const same = h('input', { type: 'checkbox' });
    const scope = h('select', { 'aria-label': 'What the approval is for' }, always.map((s) => h('option', { value: s }, names[s] ?? s)));
    const send = () => this.#answer({ approve: true, always: true, for: scope.value, sameArguments: same.checked }, `Approved ${names[scope.value]}`);
    return [h('span', { class: 'ask-always' }, button('Always', { type: 'button', onclick: send }), scope,
      h('label', {}, same, ' only with these arguments'))];
  }

  /** deny presses the button, if there is one. */
  deny() {
    this.#buttons.at(-1)?.click();
  }

  /** arm has the card take no answer for a moment, as it has just come to where it is. */
  arm() {
    clearTimeout(this.#arming);
    this.#arming = setTimeout(() => {
      this.#arming = null;
      this.#showReady();
    }, armMs);
    this.#showReady();
  }

  get #ready() {
    return this.#arming === null && !this.#sending;
  }

  /** Buttons that were disabled would lose the focus. */
  #showReady() {
    for (const b of this.#buttons) b.setAttribute('aria-disabled', String(!this.#ready));
  }

  #send() {
    if (!this.#form) {
      this.#answer({ approve: true }, this.#ask.kind === 'confirm' ? 'Confirmed' : 'Approved');
      return;
    }
    const got = this.#form.read();
    if (got.error) {
      got.at.focus();
      return;
    }
    this.#answer({ approve: true, value: got.value ?? null }, 'Answered');
  }

  async #answer(body, done) {
    if (!this.#ready) return;
    const { api, shell, feed } = this.#context;
    this.#sending = true;
    this.#showReady();
    show(this.#error, false);
    try {
      await api.answer(this.#ask.interactionId, body);
      shell.toast(`${done}: ${printable(this.#ask.toolName || kindOf(this.#ask.kind))}`, { tone: body.approve ? 'ok' : 'idle' });
      feed.poke();
    } catch (error) {
      this.#sending = false;
      this.#showReady();
      fill(this.#error, error.remedy ? `${error.message}. ${error.remedy}.` : error.message);
      show(this.#error, true);
    }
  }

  tick(time) {
    const left = Math.max(0, Date.parse(this.#ask.expiresAt) - time);
    setText(this.#left, left > 0 ? `${timer(left + 999)} left` : 'time is over');
    setData(this.node, 'urgency', left < 10_000 ? 'late' : left < 30_000 ? 'slow' : 'ok');
    this.#bar.style.setProperty('--part', Math.min(1, left / this.#ask.timeoutMs).toFixed(4));
  }

  /** focus goes to what answers it. */
  focus() {
    this.node.querySelector('input, textarea, select, button')?.focus();
  }
}

function argumentsOf(ask) {
  const args = ask.arguments;
  if (args === undefined || (typeof args === 'object' && args !== null && Object.keys(args).length === 0)) return null;
  return h('pre', { class: 'ask-arguments', tabindex: 0, 'aria-label': 'Arguments' }, printable(json(args)));
}

/** What the call may touch, so that a yes is an informed one. */
function policyOf(ask) {
  const { policy } = ask;
  if (!policy) return null;
  const rows = [
    ['Sandbox', policy.tier === 'none' ? 'none: it runs with all rights of the daemon' : policy.tier, policy.tier === 'none'],
    ['Network', policy.grants ? policy.grants.join(', ') : policy.network === 'none' ? 'none' : `as the ${policy.network}`, policy.network !== 'none'],
    ['Reads', policy.read.join(', '), false],
    ['Writes', policy.write.join(', '), true],
  ];
  return h('dl', { class: 'ask-policy' }, rows.filter(([, value]) => value).map(([name, value, strong]) =>
    h('div', {}, h('dt', {}, name), h('dd', { class: strong ? 'strong' : null }, strong ? icon('warn') : null, printable(value)))));
}
