// Shortcuts of one key, and the page that lists them. They can be turned off,
// for those whose speech or switches would press them by chance.

import { h } from './dom.js';
import { store, stored } from './shell.js';

const views = { 1: '#/live', 2: '#/history', 3: '#/tools', 4: '#/charts', 5: '#/approvals' };

const list = [
  ['1 2 3 4 5', 'Live, History, Tools, Charts, Approvals'],
  ['↑ ↓', 'move in a list; Home and End'],
  ['Enter', 'open, or unfold, what has the focus'],
  ['x', 'cancel the call that has the focus; again to kill it at once'],
  ['Shift + X', 'cancel its turn'],
  ['w', 'go to the first question that waits for you'],
  ['d', 'deny the question that has the focus'],
  ['/', 'go to the filter'],
  ['Space', 'in a replay: play or pause'],
  ['t', 'change the theme'],
  ['?', 'this list'],
];

/** keys listens for them; view() is what is shown. */
export function keys(shell, view) {
  const help = makeHelp();
  document.body.append(help);
  document.getElementById('help').addEventListener('click', () => help.showModal());
  document.addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || writing(e.target) || help.open) return;
    if (stored('shortcuts') === 'off') return;
    if (press(e, shell, view(), help)) e.preventDefault();
  });
}

function press(e, shell, view, help) {
  if (view?.key?.(e)) return true;
  if (views[e.key]) location.hash = views[e.key];
  else if (e.key === '?') help.showModal();
  else if (e.key === 't') shell.turnTheme();
  else if (e.key === 'w') location.hash = '#/live?waiting=' + Date.now();
  else return false;
  return true;
}

/** writing: the key is meant for what has the focus. */
const writing = (node) => node.closest?.('input:not([type=checkbox], [type=range]), textarea, select, [contenteditable]') !== null;

function makeHelp() {
  const on = h('input', { type: 'checkbox', id: 'shortcuts', onchange: (e) => store('shortcuts', e.target.checked ? 'on' : 'off') });
  on.checked = stored('shortcuts') !== 'off';
  const rows = list.map(([key, what]) => h('div', {}, h('dt', {}, key.split(' ').map((k) => (k === '+' ? '+' : h('kbd', {}, k)))), h('dd', {}, what)));
  const dialog = h('dialog', { class: 'help', 'aria-labelledby': 'help-title' },
    h('form', { method: 'dialog' },
      h('header', {}, h('h2', { id: 'help-title' }, 'Keyboard'), h('button', { class: 'quiet', value: 'close' }, 'Close')),
      h('dl', {}, rows),
      h('label', { class: 'check' }, on, 'Use single-key shortcuts')));
  dialog.addEventListener('click', (e) => {
    if (e.target === dialog) dialog.close();
  });
  return dialog;
}
