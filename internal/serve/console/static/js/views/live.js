// Live: the active turns, what waits for a human, and what has just ended.

import { active, asks, callsOf, recent, underWay } from '../store.js';
import { mayAnswer, seesTurns, waitingWords } from '../rights.js';
import { h, Rows, roving, setText, show } from '../dom.js';
import { brief, clock, count, printable, span } from '../format.js';
import { byTone, tones, toneNames } from '../status.js';
import { TurnCard } from '../turncard.js';
import { AskCard } from '../ask.js';
import { href } from '../route.js';

const maxTurns = 40; // that are drawn at once

export function live(root, context, route) {
  return new Live(root, context, route);
}
live.title = 'Live';

class Live {
  #context;
  #figures = {};
  #turns;
  #asks;
  #recent;
  #list = h('div', { class: 'turns' });
  #askList = h('div', { class: 'asks' });
  #recentList = h('ul', { class: 'recent' });
  #askTitle = h('h2', { tabindex: -1, id: 'asks-title' }, 'Waiting for you');
  #noTurns = h('div', { class: 'empty', hidden: true });
  #unseen = h('p', { class: 'empty-line', hidden: true }, 'Turns are shown to the roles call and watch.');
  #noAsks = h('p', { class: 'empty-line' }, 'Nothing waits for you.');
  #noRecent = h('p', { class: 'empty-line' });
  #more = h('p', { class: 'turn-more', hidden: true });
  #rove;

  constructor(root, context, route) {
    this.#context = context;
    root.append(h('h1', { class: 'unseen' }, 'Live'), this.#summary(),
      h('div', { class: 'live-columns' },
        h('section', { class: 'live-asks', 'aria-labelledby': 'asks-title' }, this.#askTitle, this.#noAsks, this.#askList),
        h('section', { class: 'live-turns', 'aria-label': 'Active turns' }, h('h2', {}, 'Active turns'), this.#unseen, this.#noTurns, this.#list, this.#more),
        h('section', { class: 'live-recent', 'aria-label': 'Just ended' }, h('h2', {}, 'Just ended'), this.#noRecent, this.#recentList)));
    this.#noTurns.append(h('p', {}, h('strong', {}, 'Nothing runs.')),
      h('p', {}, 'When a host begins a turn, its calls appear here. You can ', h('a', { href: '#/tools' }, 'try a tool'), ' yourself.'));
    this.#turns = new Rows(this.#list, (turn) => new TurnCard(context, turn));
    this.#asks = new Rows(this.#askList, (ask) => this.#askRow(ask));
    this.#recent = new Rows(this.#recentList, (turn) => recentRow(turn));
    this.#rove = roving(this.#list, '.call-head');
    if (route.query.waiting) requestAnimationFrame(() => this.#toAsks());
  }

  #summary() {
    const names = { turns: 'turns', running: 'running', queued: 'queued', waiting: 'waiting for you' };
    return h('dl', { class: 'figures' }, Object.entries(names).map(([key, name]) => {
      const value = h('dd', {}, '0');
      this.#figures[key] = value;
      return h('div', { data: { figure: key } }, h('dt', {}, name), value);
    }));
  }

  #askRow(ask) {
    const card = new AskCard(this.#context, ask);
    return {
      node: card.node,
      update: () => {},
      tick: (time) => card.tick(time),
      card,
    };
  }

  update(ids) {
    const { state } = this.#context;
    const turns = active(state);
    const shown = turns.slice(-maxTurns);
    this.#turns.sync(shown, (t) => t.id, ids);
    const unseen = state.me !== null && !seesTurns(state.me);
    show(this.#unseen, unseen);
    show(this.#noTurns, turns.length === 0 && !unseen);
    show(this.#more, turns.length > maxTurns);
    setText(this.#more, `${count(turns.length - maxTurns, 'older turn is', 'older turns are')} active, too`);
    setText(this.#askTitle, waitingWords(state.me));
    this.#updateAsks(asks(state));
    const over = recent(state);
    this.#recent.sync(over, (t) => t.id);
    show(this.#noRecent, over.length === 0);
    setText(this.#noRecent, `No turn ${state.past ? 'has ended' : 'was seen to end'} since this page was opened.`);
    this.#count(turns);
    this.#rove.one();
  }

  #updateAsks(all) {
    const places = () => [...this.#askList.children].map((node) => node.dataset.ask);
    const before = places();
    const at = [...this.#askList.children].findIndex((node) => node.contains(document.activeElement));
    this.#asks.sync(all.filter((a) => !a.partial), (a) => a.interactionId);
    show(this.#noAsks, all.length === 0);
    // Who was about to press meant the card that stood there.
    places().forEach((id, i) => id !== before[i] && this.#asks.get(id).card.arm());
    if (at >= 0 && !this.#askList.contains(document.activeElement)) this.#handOn(at);
  }

  /** A card that goes hands the focus on to the one in its place: not to its buttons, and a key does not deny it at once, since nobody has read it yet. */
  #handOn(at) {
    const { children } = this.#askList;
    const next = children[Math.min(at, children.length - 1)];
    if (next) this.#asks.get(next.dataset.ask).card.arm();
    (next ?? this.#askTitle).focus();
  }

  #count(turns) {
    const { state } = this.#context;
    const { running, queued } = underWay(turns.flatMap(callsOf));
    const figures = { turns: turns.length, running, queued, waiting: asks(state).filter((ask) => mayAnswer(state.me, ask)).length };
    for (const [key, n] of Object.entries(figures)) {
      setText(this.#figures[key], String(n));
      this.#figures[key].parentNode.classList.toggle('some', n > 0);
    }
  }

  tick(time) {
    this.#turns.each((card) => card.tick(time));
    this.#asks.each((card) => card.tick(time));
  }

  /** The page stays where it is when only its query changes. */
  moved(route, make) {
    if (make !== live) return false;
    if (route.query.waiting) this.#toAsks();
    return true;
  }

  #toAsks() {
    const first = this.#askList.querySelector('.ask');
    if (!first) {
      this.#askTitle.focus();
      return;
    }
    this.#asks.get(first.dataset.ask).card.focus();
    first.scrollIntoView({ block: 'nearest' });
  }

  key(e) {
    const row = document.activeElement?.closest?.('.call')?.querySelector('.call-head')?.row;
    const ask = e.target.closest?.('.ask')?.dataset.ask;
    // A key that is held, or meant for a checkbox, denies nothing.
    if (e.key === 'd' && ask && !e.repeat && !e.target.matches('input')) this.#asks.get(ask)?.card.deny();
    else if (e.key === 'x' && row) row.cancel();
    else if (e.key === 'X' && row) this.#turns.get(row.turnId)?.cancel();
    else return false;
    return true;
  }
}

function recentRow(turn) {
  const tally = h('span', { class: 'recent-tally' });
  const node = h('li', {}, h('a', { href: href('history', [turn.id]) },
    h('span', { class: 'recent-name' }, printable(turn.agentId || 'Turn'), ' ', h('span', { class: 'id' }, printable(brief(turn.id)))),
    h('span', { class: 'recent-time' }, `${clock(turn.endedAt)} · ${span(turn.endedAt - turn.startedAt)}`), tally));
  return {
    node,
    update(t) {
      const sum = byTone(t.counts);
      const words = tones.filter((tone) => sum[tone]).map((tone) => h('span', { class: 'tally', data: { tone } }, `${sum[tone]} ${toneNames[tone]}`));
      if (t.lost) words.push(h('span', { class: 'tally', data: { tone: 'failed' } }, 'cut off'));
      else if (t.abortedAt) words.push(h('span', { class: 'tally', data: { tone: 'idle' } }, 'turn cancelled'));
      tally.replaceChildren(...words);
    },
  };
}
