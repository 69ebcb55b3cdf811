// One active turn: what it is, its calls, and a way to stop it.

import { asking, callsOf, turnElapsed, underWay } from './store.js';
import { h, Rows, fill, setClass, setText, show } from './dom.js';
import { icon } from './icons.js';
import { brief, count, printable, timer } from './format.js';
import { waitingWords } from './rights.js';
import { CallRow } from './callrow.js';
import { byTone, toneNames, tones } from './status.js';
import { href } from './route.js';
import { now } from './api.js';

const maxOpen = 30; // calls that are shown of those under way
const maxEnded = 6; // and of those that were the last to end

export class TurnCard {
  #context;
  #turn;
  #calls;
  #title = h('a', {});
  #facts = h('p', { class: 'turn-facts' });
  #timer = h('span', { class: 'turn-timer' });
  #waiting = h('span', { class: 'turn-waiting', hidden: true });
  #list = h('ul', { class: 'calls' });
  #more = h('p', { class: 'turn-more', hidden: true });
  #ended = h('p', { class: 'turn-ended' });
  #cancel = h('button', { type: 'button', class: 'turn-cancel', onclick: () => this.cancel() }, 'Cancel turn');

  constructor(context, turn) {
    this.#context = context;
    this.#turn = turn;
    const id = 'turn-' + Math.random().toString(36).slice(2);
    this.#title.id = id;
    this.#title.href = href('history', [turn.id]);
    this.node = h('section', { class: 'turn', 'aria-labelledby': id, data: { turn: turn.id } },
      h('header', {}, h('div', { class: 'turn-words' }, h('h3', {}, this.#title), this.#facts),
        this.#waiting, this.#timer, this.#cancel),
      this.#list, h('footer', {}, this.#more, this.#ended));
    this.#calls = new Rows(this.#list, (call) => new CallRow(context, turn, call));
  }

  update(turn) {
    this.#turn = turn;
    const all = callsOf(turn);
    const open = all.filter((c) => !c.endedAt);
    const ended = all.filter((c) => c.endedAt).sort((a, b) => a.endedAt - b.endedAt);
    const shown = new Set([...open.slice(0, maxOpen), ...ended.slice(-maxEnded)]);
    this.#calls.sync(all.filter((c) => shown.has(c)), (c) => c.id);
    setText(this.#title, printable(turn.agentId || 'Turn'));
    setText(this.#facts, facts(turn, open));
    show(this.#more, open.length > maxOpen);
    setText(this.#more, `${count(open.length - maxOpen, 'more call waits', 'more calls wait')}`);
    this.#showEnded();
    this.#showCancel(open);
    fill(this.#waiting, icon('person'), waitingWords(this.#context.state.me));
    this.tick(now());
  }

  #showEnded() {
    const turn = this.#turn;
    const sum = byTone(turn.counts);
    show(this.#ended, turn.ended > 0 || turn.gaps > 0);
    fill(this.#ended, turn.ended > 0 ? h('span', {}, count(turn.ended, 'call'), ' ended: ') : null,
      tones.filter((t) => sum[t]).map((t) => h('span', { class: 'tally', data: { tone: t } }, `${sum[t]} ${toneNames[t]}`)),
      turn.gaps > 0 ? h('span', { class: 'gap' }, `${count(turn.gaps, 'event')} could not be had`) : null);
  }

  #showCancel(open) {
    const aborted = this.#turn.abortedAt > 0;
    this.#cancel.hidden = aborted && open.length === 0;
    setText(this.#cancel, aborted ? 'Kill now' : 'Cancel turn');
    this.#cancel.setAttribute('aria-label', `${aborted ? 'Kill now: turn' : 'Cancel turn'} ${brief(this.#turn.id)}`);
  }

  tick(time) {
    const waits = asking(this.#turn) || this.#turn.asks.size > 0;
    show(this.#waiting, waits);
    setClass(this.node, 'waits', waits);
    setText(this.#timer, timer(turnElapsed(this.#turn, time)));
    this.#timer.title = waits ? 'It stands still while people are waited for' : 'Since the turn began, less the time that it waited for people';
    this.#calls.each((row) => row.tick(time));
  }

  /** cancel ends all calls of the turn; a second time kills them at once. */
  async cancel() {
    const { api, shell } = this.#context;
    this.#cancel.disabled = true;
    try {
      await api.abort(this.#turn.id);
      shell.toast('Turn cancelled');
    } catch (error) {
      shell.failed('The turn could not be cancelled', error);
    } finally {
      this.#cancel.disabled = false;
    }
  }
}

function facts(turn, open) {
  const { running, waiting, queued } = underWay(open);
  const words = [brief(turn.id)];
  if (turn.sessionId) words.push(`session ${brief(turn.sessionId)}`);
  if (turn.parentId) words.push(`child of ${brief(turn.parentId)}`);
  if (running > 0) words.push(`${running} running`);
  if (waiting > 0) words.push(`${waiting} waiting for people`);
  if (queued > 0) words.push(`${queued} queued`);
  if (turn.abortedAt) words.push('cancelled');
  else if (open.length === 0) words.push('nothing runs: the model has its turn');
  return printable(words.join(' · '));
}
