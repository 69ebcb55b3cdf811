// Approvals: what people have approved for more than one call, and the way to take it back.

import { h, fill, show } from '../dom.js';
import { json, printable, stamp } from '../format.js';
import { href } from '../route.js';

export function approvals(root, context) {
  return new Approvals(root, context);
}
approvals.title = 'Approvals';

class Approvals {
  #context;
  #closed = new AbortController();
  #problem = h('div', { class: 'problem', role: 'alert', hidden: true });
  #list = h('div', { class: 'approvals' });

  constructor(root, context) {
    this.#context = context;
    root.append(h('header', { class: 'record-head' }, h('h1', {}, 'Approvals'),
      h('button', { type: 'button', class: 'quiet', onclick: () => this.#load() }, 'Refresh')),
      h('p', { class: 'muted' }, 'What goes by one of these is not asked about.'), this.#problem, this.#list);
    this.#load();
  }

  async #load() {
    try {
      const list = await this.#context.api.approvals(this.#closed.signal);
      show(this.#problem, false);
      fill(this.#list, list.length > 0 ? list.map((a) => this.#card(a)) : h('div', { class: 'empty' },
        h('strong', {}, 'Nothing is approved for more than one call.'), h('p', {}, 'A question can be answered for a turn, a session or an identity: ', h('a', { href: href('live') }, 'see what waits'), '.')));
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#failed(error);
    }
  }

  #failed(error) {
    fill(this.#problem, h('strong', {}, error.message), error.remedy ? h('p', {}, error.remedy) : null);
    show(this.#problem, true);
  }

  #card(a) {
    const now = this.#context.api.now();
    const revoke = h('button', { type: 'button', class: 'deny', 'aria-label': `Revoke the approval of ${printable(a.toolName)}` }, 'Revoke');
    revoke.addEventListener('click', () => this.#revoke(a, revoke));
    const rows = [
      ['For', { turn: ['the turn ', h('a', { href: href('history', [a.turnId ?? '']) }, printable(a.turnId ?? ''))], session: [`the session ${printable(a.sessionId ?? '')}`], identity: ['all turns'] }[a.for]],
      ['Calls of', [printable(a.owner ?? 'nobody in particular')]],
      ['Rule', a.rule ? [printable(a.rule)] : null],
      ['Given', [`${stamp(Date.parse(a.at), now)} by ${printable(a.by || 'somebody unknown')}`]],
      ['Ends', [a.revokedAt ? 'revoked; the next daemon cannot be told yet' : a.expiresAt ? stamp(Date.parse(a.expiresAt), now) : 'with the turn']],
      ['Used', [a.uses === 0 ? 'not yet' : `${a.uses} times, last ${stamp(Date.parse(a.lastUse), now)}`.replace(/^1 times/, 'once')]],
    ];
    return h('article', { class: 'card approval', data: { approval: a.approvalId } },
      h('header', {}, h('h2', {}, printable(a.toolName)), revoke),
      h('dl', {}, rows.filter(([, value]) => value).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
      a.arguments === undefined ? null : h('pre', { tabindex: 0, 'aria-label': 'Only with these arguments' }, printable(json(a.arguments))));
  }

  async #revoke(a, button) {
    button.disabled = true;
    try {
      await this.#context.api.revokeApproval(a.approvalId);
      this.#context.shell.toast(`Revoked: ${printable(a.toolName)}`, { tone: 'idle' });
    } catch (error) {
      if (error.status !== 404) {
        button.disabled = false;
        return this.#failed(error);
      }
    }
    this.#load();
  }

  close() {
    this.#closed.abort();
  }
}
