// One call in a live turn: a line that unfolds to its output.

import { idsOf, asking, callElapsed, stopAsked, usageOf } from './store.js';
import { h, fill, setClass, setData, setText, show } from './dom.js';
import { icon } from './icons.js';
import { brief, count, head, line, pace, printable, size, span, timer, word } from './format.js';
import { tail } from './output.js';
import { waitingWords } from './rights.js';
import { OutputView } from './outputview.js';
import { iconOf, nameOf, reasonOf, toneOf } from './status.js';
import { href } from './route.js';
import { now } from './api.js';

export class CallRow {
  #context;
  #turn;
  #call;
  #output = null;
  #iconName = '';
  #icon = h('span', { class: 'call-icon' });
  #name = h('span', { class: 'call-name' });
  #preview = h('span', { class: 'call-preview' });
  #progress = h('progress', { class: 'call-progress', max: 1, hidden: true });
  #timer = h('span', { class: 'call-timer' });
  #limit = h('span', { class: 'call-limit' });
  #bar = h('span', { class: 'call-bar', 'aria-hidden': 'true' });
  #usage = h('span', { class: 'call-usage' });
  #cancel = h('button', { type: 'button', class: 'call-cancel', onclick: () => this.cancel() });
  #words = h('span');
  #record = h('a', { hidden: true }, 'Open the record');
  #facts = h('p', { class: 'call-facts' }, this.#words, this.#record);
  #body = h('div', { class: 'call-body', hidden: true });
  #head;

  constructor(context, turn, call) {
    this.#context = context;
    this.#turn = turn;
    this.#call = call;
    this.#head = h('button', { type: 'button', class: 'call-head', tabindex: -1, 'aria-expanded': 'false', onclick: () => this.#unfold() },
      this.#icon, h('span', { class: 'call-words' }, this.#name, this.#preview), this.#progress, this.#usage,
      h('span', { class: 'call-time' }, this.#timer, this.#limit, this.#bar));
    this.node = h('li', { class: 'call', data: { call: call.id } }, this.#head, this.#cancel, this.#body);
    this.#head.row = this;
    this.#record.href = href('history', [turn.id, call.id]);
    setText(this.#name, printable(call.tool));
    this.#name.title = this.#name.textContent;
  }

  update(call) {
    this.#call = call;
    const state = asking(call) ? 'asking' : call.state;
    setData(this.node, 'state', state);
    setData(this.node, 'tone', call.endedAt ? toneOf(call.status) : '');
    this.#setIcon(call.endedAt ? iconOf[toneOf(call.status)] : { asking: 'person', running: 'play', stopping: 'stop', queued: 'dots' }[state]);
    this.#showPreview(call);
    setClass(this.#preview, 'dim', !call.endedAt);
    show(this.#progress, !call.endedAt && call.fraction !== null);
    if (call.fraction !== null) this.#progress.value = call.fraction;
    this.#showUsage();
    this.#showCancel(state);
    if (this.#output) {
      this.#output.update(call.output);
      this.#showFacts();
    }
    this.tick(now());
  }

  tick(time) {
    const call = this.#call;
    const ms = callElapsed(call, time);
    setData(this.node, 'pace', call.startedAt && !call.endedAt ? pace(ms) : '');
    setText(this.#timer, this.#time(ms));
    const limited = call.startedAt && !call.endedAt && call.timeoutMs > 0 && !asking(call);
    setText(this.#limit, limited ? `of ${timer(call.timeoutMs)}` : '');
    show(this.#bar, limited);
    if (limited) this.#bar.style.setProperty('--part', Math.min(1, ms / call.timeoutMs).toFixed(4));
  }

  #time(ms) {
    const call = this.#call;
    if (call.endedAt) return call.startedAt ? span(call.elapsedMs || ms) : '';
    if (asking(call)) return call.startedAt ? timer(ms) : 'waiting';
    return call.startedAt ? timer(ms) : 'queued';
  }

  /** Until a call says something, its id tells it from others of its tool. */
  #showPreview(call) {
    const words = preview(call, this.#context.state.me);
    const named = words === '' && !call.endedAt;
    setText(this.#preview, named ? word(brief(call.id, 10)) : words);
    setData(this.#preview, 'named', String(named));
    this.#preview.title = named ? word(`call ${call.id}`) : '';
  }

  #showUsage() {
    const used = usageOf(this.#turn, this.#call);
    // Without a controller for it the daemon knows no memory.
    const worker = printable(this.#call.worker);
    setText(this.#usage, [worker, used?.memoryBytes > 0 ? size(used.memoryBytes) : ''].filter(Boolean).join(' · '));
    this.#usage.title = [worker && `At worker ${worker}`, used && 'Memory in use, page cache included'].filter(Boolean).join('. ');
  }

  #setIcon(name) {
    if (name === this.#iconName) return;
    this.#iconName = name;
    fill(this.#icon, icon(name));
  }

  #showCancel(state) {
    show(this.#cancel, !this.#call.endedAt && !this.#turn.over);
    const words = state === 'stopping' ? 'Kill now' : 'Cancel';
    setText(this.#cancel, words);
    this.#cancel.setAttribute('aria-label', `${words}: ${word(this.#call.tool)}, call ${word(this.#call.id)}`);
  }

  #unfold() {
    const open = this.#head.getAttribute('aria-expanded') !== 'true';
    this.#head.setAttribute('aria-expanded', String(open));
    show(this.#body, open);
    if (!open) return;
    if (!this.#output) {
      this.#output = new OutputView();
      fill(this.#body, this.#facts, this.#output.node);
    }
    this.#output.update(this.#call.output);
    this.#showFacts();
  }

  #showFacts() {
    const call = this.#call;
    const used = usageOf(this.#turn, call);
    const words = [`call ${call.id}`, call.worker && `at worker ${call.worker}`, used && `${size(used.memoryBytes)} of memory, ${count(used.pids, 'process', 'processes and threads')}, ${span(used.cpuMs)} of CPU time`,
      call.overran ? 'over its soft budget' : '', call.timedOut ? 'its time is over' : ''];
    setText(this.#words, printable(words.filter(Boolean).join(' · ')));
    show(this.#record, call.endedAt > 0);
  }

  /** cancel ends the call; a second time kills it at once. */
  async cancel() {
    const { api, shell } = this.#context;
    const call = this.#call;
    if (call.endedAt) return;
    this.#cancel.disabled = true;
    try {
      await abortAny(api, this.#turn.id, call.id);
      stopAsked(call, now());
      shell.toast(`Call cancelled: ${word(call.tool)}, call ${word(head(call.id, 60))}`);
      this.update(call);
    } catch (error) {
      shell.failed('The call could not be cancelled', error);
    } finally {
      this.#cancel.disabled = false;
    }
  }

  get turnId() {
    return this.#turn.id;
  }
}

/** abortAny tries what the daemon may know the call by. */
async function abortAny(api, turnId, callId) {
  const ids = idsOf(callId);
  for (const id of ids) {
    try {
      return await api.abortCall(turnId, id);
    } catch (error) {
      if (error.status !== 404 || id === ids.at(-1)) throw error;
    }
  }
}

/** preview is one line that says what the call does, or how it went. */
function preview(call, me) {
  // The last line says most, unless it is where the text was cut.
  if (call.endedAt && call.status === 'ok') return (call.display.endsWith('…') ? first(call.display) : line(call.display)) || 'OK';
  if (call.endedAt) return `${nameOf(call.status)} · ${untagged(call.display) || reasonOf(call.reason, call.status)}`.replace(/ · $/, '');
  if (asking(call)) return waitingWords(me);
  if (call.state === 'stopping') return call.timedOut ? 'Its time is over: it is being stopped' : 'It is being stopped';
  return line(call.message) || line(tail(call.output));
}

const first = (text) => line(text.trimStart().split('\n', 1)[0]);

/** untagged is the first line of what the model is told, less what the name says. */
const untagged = (display) => first(display).replace(/^\[[A-Z]+\] /, '');
