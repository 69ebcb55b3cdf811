// What the browser tests share: the daemon's API as a host uses it, the control
// of the daemon, and pages that note what should not happen in them.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

export const open = process.env.CONSOLE_OPEN;
export const guarded = process.env.CONSOLE_GUARDED;
const control = process.env.CONSOLE_CONTROL;

/** limitMs only ends what hangs. */
export const limitMs = Number(process.env.CONSOLE_LIMIT_MS ?? 30_000);

let browser;

export async function launch() {
  browser = await chromium.launch({
    executablePath: process.env.CONSOLE_CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  });
}

export const close = () => browser.close();

/** page opens the console. What a page must not do is noted, and thrown by done. */
export async function page(path = '/', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', timezoneId: 'UTC', ...options });
  const p = await context.newPage();
  p.setDefaultTimeout(limitMs);
  const bad = [];
  p.allowed = []; // what a test means to happen
  p.on('console', (m) => {
    if (['error', 'warning'].includes(m.type())) bad.push(`${m.type()}: ${m.text()} ${m.location().url}`);
  });
  p.on('pageerror', (e) => bad.push(`thrown: ${e.stack}`));
  p.on('request', (r) => {
    if (new URL(r.url()).origin !== new URL(open).origin && new URL(r.url()).origin !== new URL(guarded).origin && !r.url().startsWith('data:')) bad.push(`outside: ${r.url()}`);
  });
  p.done = async () => {
    const left = bad.filter((b) => !p.allowed.some((a) => a.test(b)));
    await context.close();
    assert.deepEqual(left, [], 'what a page must not do');
  };
  await p.goto((options.base ?? open) + path);
  return p;
}

async function send(method, url, body) {
  const response = await fetch(url, { method, body: body === undefined ? undefined : JSON.stringify(body), headers: body === undefined ? {} : { 'Content-Type': 'application/json' } });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return text === '' || !text.startsWith('{') ? text : JSON.parse(text);
}

/** daemon is the control of it. */
export const daemon = {
  kill: () => send('POST', control + '/kill'),
  start: () => send('POST', control + '/start'),
  /** cut breaks the connections at the guarded address; the host's are elsewhere. */
  cut: () => send('POST', control + '/cut'),
  letGo: (name) => send('POST', `${control}/let-go/${encodeURIComponent(name)}`),
  link: () => send('POST', control + '/link'),
};

/** host is a program that runs turns. */
export const host = {
  get: (path) => send('GET', open + path),
  begin: async (spec = {}) => (await send('POST', open + '/api/turns', spec)).turnId,
  /** run gives a promise of the results; a turn that is cut off gives none. */
  run: (turnId, calls) => {
    const results = send('POST', `${open}/api/turns/${encodeURIComponent(turnId)}/calls`, { calls }).then((r) => r.results);
    results.catch(() => {}); // whoever wants the results awaits them
    return results;
  },
  end: (turnId) => send('POST', `${open}/api/turns/${encodeURIComponent(turnId)}/end`),
  abort: (turnId) => send('POST', `${open}/api/turns/${encodeURIComponent(turnId)}/abort`),
  answer: (id, body) => send('POST', `${open}/api/interactions/${id}/answer`, body),
};

/** signedIn opens the console as `toolhost console` has people do it. */
export async function signedIn(options = {}) {
  return page((await daemon.link()).slice(guarded.length), { base: guarded, ...options });
}

/** textOf is all text that a page shows. */
export const textOf = (p) => p.evaluate(() => document.body.innerText);

let calls = 0;

/** call is one of a tool; its arguments say what the fake does. */
export const call = (tool, args = {}, id = `call-${++calls}`) => ({ id, tool, arguments: args });

/** until waits until a question of ours is answered by yes. */
export async function until(what, ask) {
  for (const end = Date.now() + limitMs; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
    const got = await ask();
    if (got) return got;
  }
  throw new Error(`waited in vain: ${what}`);
}
