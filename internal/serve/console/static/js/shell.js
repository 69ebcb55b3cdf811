// The frame around the views: connection, what waits, theme, words for readers.

import { h, fill, setText, show } from './dom.js';
import { icon } from './icons.js';
import { count } from './format.js';

const themes = ['auto', 'light', 'dark'];
const themeIcons = { auto: 'auto', light: 'sun', dark: 'moon' };
const toastMs = 6000;
const maxToasts = 4;

const byId = (id) => document.getElementById(id);

export class Shell {
  onRetry = () => {};
  onSignOut = () => {};
  #status = { kind: 'connecting' };
  #wasLost = false;
  #version = null;
  #asked = false; // for the version, since the last connection
  #waiting = 0;
  #told = null; // what was said last of what waits
  #title = 'Live';

  constructor() {
    for (const node of document.querySelectorAll('[data-icon]')) node.prepend(icon(node.dataset.icon));
    byId('skip').addEventListener('click', (e) => {
      e.preventDefault();
      byId('main').focus();
    });
    byId('theme').addEventListener('click', () => this.turnTheme());
    this.#showTheme();
  }

  /** opened marks the view that is shown. */
  opened(name, title) {
    this.#title = title;
    this.#showTitle();
    for (const link of document.querySelectorAll('nav a')) {
      if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  #showTitle() {
    document.title = (this.#waiting > 0 ? `(${this.#waiting}) ` : '') + `${this.#title} · toolhost`;
  }

  /** waiting says in every view how many questions wait for an answer. */
  waiting(n) {
    if (n === this.#waiting) return;
    this.#told?.remove(); // it is no longer so
    this.#told = n > this.#waiting ? this.say(`${count(n, 'question waits', 'questions wait')} for you`) : null;
    this.#waiting = n;
    this.#showTitle();
    const pill = byId('waiting');
    show(pill, n > 0);
    fill(pill, icon('person'), h('span', {}, h('span', { class: 'wide' }, 'Waiting for you '), h('b', {}, n)));
    pill.setAttribute('aria-label', `Waiting for you: ${count(n, 'question')}`);
  }

  /** connection shows how the daemon can be reached. */
  connection(status) {
    const before = this.#status.kind;
    this.#status = status;
    byId('connection').dataset.kind = status.kind;
    if (status.kind !== 'live') this.#asked = false;
    if (status.kind === 'live' && this.#wasLost) this.toast('Connected again');
    if (status.kind === 'lost') this.#wasLost = true;
    if (['signedOut', 'forbidden'].includes(status.kind)) this.waiting(0); // it waits for others
    if (status.kind === 'live') this.#wasLost = false;
    document.body.dataset.connection = status.kind;
    this.#banner(before);
    this.tick();
  }

  #banner(before) {
    const { kind } = this.#status;
    const banner = byId('banner');
    show(banner, ['lost', 'signedOut', 'forbidden'].includes(kind));
    if (kind === before) return;
    const retry = h('button', { type: 'button', onclick: () => this.onRetry() }, 'Try now');
    if (kind === 'lost') {
      fill(banner, icon('warn'), h('span', {}, 'The daemon cannot be reached. What you see may be old; it goes on by itself. '), retry);
    }
    if (kind === 'forbidden') {
      fill(banner, icon('lock'), h('span', {}, `You may not see turns here: ${this.#status.error.message}.`), retry);
    }
    if (kind === 'signedOut') {
      fill(banner, icon('lock'), h('span', {}, 'This browser is not signed in. Run ', h('code', {}, 'toolhost console'), ' on the daemon’s machine and open the link that it prints: it works once, within two minutes, and a session lasts twelve hours.'), retry);
    }
  }

  /** account shows whether this tab is signed in, as whom, and lets it sign out. */
  async account(signedIn, api) {
    const button = byId('account');
    show(button, signedIn);
    if (!signedIn) return;
    fill(button, icon('lock'));
    button.onclick = () => this.onSignOut();
    let who = '';
    try {
      const { identity, roles } = await api.whoami();
      who = ` (${identity}: ${roles.join(', ')})`;
    } catch {
      // The connection says what is wrong.
    }
    button.title = `Sign out${who}`;
    button.setAttribute('aria-label', button.title);
  }

  /** live: what is shown is true at this moment. */
  get live() {
    return this.#status.kind === 'live';
  }

  tick() {
    const { kind, retryAt } = this.#status;
    const words = { connecting: 'Connecting…', live: 'Connected', signedOut: 'Signed out', forbidden: 'Not allowed', lost: 'Connection lost' }[kind];
    const left = kind === 'lost' ? Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)) : 0;
    // The seconds are for eyes: a reader would hear each of them.
    let node = byId('connection').firstElementChild;
    if (!node) {
      node = h('span');
      fill(byId('connection'), node, h('span', { 'aria-hidden': 'true' }));
    }
    setText(node, words);
    setText(node.nextSibling, left > 0 ? `· again in ${left}s` : '');
  }

  /** versionOf asks once a connection, and says when the daemon is another one. */
  async versionOf(api) {
    if (this.#asked) return;
    this.#asked = true;
    try {
      const { version = '' } = await api.health();
      if (this.#version !== null && version !== this.#version) this.#renewed(version);
      this.#version ??= version;
    } catch {
      this.#asked = false;
    }
  }

  #renewed(version) {
    this.toast(`The daemon is now ${version}: reload for its console`, {
      tone: 'wait', keep: true, action: h('button', { type: 'button', onclick: () => location.reload() }, 'Reload'),
    });
  }

  /** toast says that something has been done, or why not. */
  toast(text, { tone = 'ok', keep = false, action = null } = {}) {
    const close = h('button', { type: 'button', class: 'quiet square', 'aria-label': 'Dismiss', onclick: () => node.remove() }, icon('cross'));
    const node = h('div', { class: 'toast', data: { tone } }, icon(tone === 'failed' ? 'warn' : 'check'), h('span', {}, text), action, close);
    const all = byId('toasts');
    all.append(node);
    while (all.children.length > maxToasts) all.firstChild.remove();
    if (!keep) setTimeout(() => node.remove(), tone === 'failed' ? 2 * toastMs : toastMs);
  }

  /** failed says why something could not be done. */
  failed(what, error) {
    const why = error.remedy ? `${error.message} (${error.remedy})` : error.message;
    this.toast(`${what}: ${why}`, { tone: 'failed' });
  }

  /** say is for readers of the screen only. */
  say(text) {
    const all = byId('spoken');
    const node = h('p', {}, text);
    all.append(node);
    while (all.children.length > 10) all.firstChild.remove();
    return node;
  }

  turnTheme() {
    const next = themes[(themes.indexOf(this.#theme()) + 1) % themes.length];
    if (next === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    store('theme', next);
    this.#showTheme();
    this.say(`Theme: ${next}`);
  }

  #theme() {
    return document.documentElement.dataset.theme ?? 'auto';
  }

  #showTheme() {
    const theme = this.#theme();
    const button = byId('theme');
    fill(button, icon(themeIcons[theme]));
    button.title = `Theme: ${theme} (t)`;
    button.setAttribute('aria-label', `Theme: ${theme}. Change it`);
  }
}

/** store keeps a setting, where the browser lets us. */
export function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It is for this page only, then.
  }
}

/** stored is a setting, or null. */
export function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
