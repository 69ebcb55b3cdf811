// Starts the console: the feed, the views, and what is common to them.

import * as api from './api.js';
import * as session from './session.js';
import { Feed } from './feed.js';
import { Frames, fill, h } from './dom.js';
import { parse } from './route.js';
import { mayAnswer } from './rights.js';
import { createState, asks } from './store.js';
import { Shell } from './shell.js';
import { keys } from './keys.js';
import { live } from './views/live.js';
import { history } from './views/history.js';
import { turn } from './views/turn.js';
import { call } from './views/call.js';
import { tools } from './views/tools.js';
import { approvals } from './views/approvals.js';
import { charts } from './views/charts.js';

const state = createState();
const dirty = new Set(); // ids of turns to draw anew
const main = document.getElementById('main');
const shell = new Shell();
let view = null; // what is shown: {update(ids), tick(now), close()}
let shown = null; // its address

const frames = new Frames(() => {
  const ids = new Set(dirty);
  dirty.clear();
  view?.update?.(ids);
});

const feed = new Feed({
  api,
  state,
  visible: () => !document.hidden,
  changed(ids) {
    // A page that is hidden draws nothing; the first list after that has it draw all.
    if (!document.hidden) for (const id of ids ?? state.turns.keys()) dirty.add(id);
    shell.waiting(asks(state).filter((ask) => mayAnswer(state.me, ask)).length);
    frames.ask();
  },
  told(status) {
    shell.connection(status);
    if (status.kind === 'live') shell.versionOf(api);
    if (status.kind === 'signedOut') session.keep(null);
  },
});

/** What a view is given. */
const context = { api, state, feed, shell };

function viewOf({ view, ids }) {
  if (view === 'history') return [history, turn, call][Math.min(2, ids.length)];
  return { live, approvals, tools, charts }[view] ?? live;
}

function open() {
  const route = parse(location.hash);
  const make = viewOf(route);
  if (view?.moved?.(route, make)) {
    shown = make;
    return true; // the view has taken the new address as its own
  }
  const again = shown === make;
  view?.close?.();
  shown = make;
  const root = h('div', { class: `view view-${make.name}` });
  fill(main, root);
  view = make(root, context, route) ?? {};
  shell.opened(route.view, make.title);
  if (!again) scrollTo(0, 0);
  view.update?.(new Set(state.turns.keys()));
  return false;
}

async function signIn() {
  const refused = await session.begin(api.login);
  if (refused !== null) shell.failed('The link does not sign you in', refused);
  shell.account(session.token() !== null, api);
}

addEventListener('hashchange', async () => {
  if (session.hasLink(location)) {
    await signIn();
    feed.renew();
  }
  const stayed = open();
  if (!stayed) main.focus({ preventScroll: true });
});
document.addEventListener('visibilitychange', () => feed.look());
addEventListener('focus', () => feed.look()); // a window that was visible all the time is shown by no other event
addEventListener('online', () => feed.poke());
setInterval(() => {
  if (document.hidden) return;
  // Without the daemon nobody knows what still runs: the timers stand still.
  if (shell.live) view?.tick?.(api.now());
  shell.tick();
}, 250);

shell.onRetry = () => feed.poke();
keys(shell, () => view);
shell.onSignOut = async () => {
  try {
    await api.logout();
  } catch (error) {
    if (error.status !== 401) return shell.failed('You are still signed in', error);
  }
  session.out();
  location.reload();
};

await signIn();
open();
feed.run();
