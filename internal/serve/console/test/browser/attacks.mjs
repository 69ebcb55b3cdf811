// What others in the same browser try: another server on this machine, a name that
// was made to point here, forms, links and sockets of other pages.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { daemon, guarded, page, signedIn } from '../helper.mjs';

/** evil is another local server: the same host, another port, and what it was sent. */
async function evil(body = '<!doctype html><title>evil</title>') {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push({ url: request.url, headers: request.headers });
    response.setHeader('Content-Type', 'text/html');
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { seen, base: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** turnsNow is how many turns the daemon has, as its administrator sees it. */
async function turnsNow() {
  const response = await fetch(guarded + '/api/turns/active', { headers: { Authorization: `Bearer ${process.env.CONSOLE_TOKEN}` } });
  return (await response.json()).turns.length;
}

async function victim(server) {
  const p = await signedIn();
  await p.locator('#connection[data-kind=live]').waitFor();
  const other = await p.context().newPage();
  await other.goto(server.base);
  return { p, other };
}

test('another local server gets neither a cookie nor the session, and reads nothing', async () => {
  const server = await evil();
  const { p, other } = await victim(server);
  p.allowed.push(/.*/);
  assert.ok(server.seen.every((r) => r.headers.cookie === undefined && r.headers.authorization === undefined));
  const stolen = await other.evaluate(async (target) => {
    const tries = {};
    const read = async (name, url, options) => {
      try {
        const r = await fetch(url, options);
        tries[name] = r.type === 'opaque' ? 'opaque' : `${r.status}`;
      } catch (error) {
        tries[name] = 'refused';
      }
    };
    await read('cors', target + '/api/turns/active', { credentials: 'include' });
    await read('no-cors', target + '/api/turns/active', { mode: 'no-cors', credentials: 'include' });
    await read('post', target + '/api/turns', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}', headers: { 'Content-Type': 'text/plain' } });
    await read('json', target + '/api/turns', { method: 'POST', credentials: 'include', body: '{}', headers: { 'Content-Type': 'application/json' } });
    await read('mcp', target + '/mcp', { method: 'POST', mode: 'no-cors', body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });
    tries.storage = String(sessionStorage.getItem('toolhost.session'));
    tries.channel = await new Promise((resolve) => {
      const channel = new BroadcastChannel('toolhost.session');
      channel.onmessage = ({ data }) => resolve(data.token ?? 'asked');
      channel.postMessage({ kind: 'ask' });
      setTimeout(() => resolve('silence'), 500);
    });
    tries.socket = await new Promise((resolve) => {
      const socket = new WebSocket(target.replace('http', 'ws') + '/api/turns/active');
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('refused');
    });
    return tries;
  }, guarded);
  assert.deepEqual(stolen, { cors: 'refused', 'no-cors': 'refused', post: 'refused', json: 'refused', mcp: 'refused', storage: 'null', channel: 'silence', socket: 'refused' });
  assert.equal(await turnsNow(), 0);
  server.close();
  await p.done();
});

test('a form of another page begins nothing, and no frame shows the console', async () => {
  const server = await evil(`<!doctype html><title>evil</title><form method="post" enctype="text/plain" action="${guarded}/api/turns"><input name='{"a":"' value='"}'></form><iframe src="${guarded}/"></iframe>`);
  const { p, other } = await victim(server);
  p.allowed.push(/.*/);
  const framed = other.frames().find((f) => f !== other.mainFrame());
  assert.ok(framed === undefined || !(await framed.content()).includes('id="connection"'), 'the console is in a frame');
  const [answer] = await Promise.all([
    other.waitForResponse((r) => r.url() === guarded + '/api/turns'),
    other.evaluate(() => document.forms[0].submit()),
  ]);
  assert.equal(answer.status(), 403);
  assert.equal(await turnsNow(), 0);
  server.close();
  await p.done();
});

test('a name that was made to point here is not the daemon’s', async () => {
  const p = await page('/', { base: guarded });
  p.allowed.push(/.*/);
  const rebound = new URL(guarded);
  rebound.hostname = 'rebound.localhost'; // which Chromium has lead to this machine
  const response = await p.goto(rebound.href);
  assert.equal(response.status(), 403);
  assert.match(await response.text(), /bad_host/);
  await p.done();
});

test('a link works once, and a token that was stolen not beyond the logout', async () => {
  const link = await daemon.link();
  const secret = link.split('#link=')[1];
  const p = await page(link.slice(guarded.length), { base: guarded });
  p.allowed.push(/.*/);
  await p.locator('#connection[data-kind=live]').waitFor();
  const replayed = await fetch(guarded + '/api/login', { method: 'POST', body: JSON.stringify({ link: secret }), headers: { 'Content-Type': 'application/json' } });
  assert.equal(replayed.status, 403);
  const token = await p.evaluate(() => sessionStorage.getItem('toolhost.session'));
  const use = (headers) => fetch(guarded + '/api/turns/active', { headers }).then((r) => r.status);
  assert.equal(await use({ Authorization: `Bearer ${token}` }), 200);
  assert.equal(await use({ Cookie: `toolhost_session=${token}` }), 401, 'as a cookie it is worthless');
  await p.getByRole('button', { name: /^Sign out/ }).click();
  await p.locator('#banner', { hasText: 'not signed in' }).waitFor();
  await daemon.kill();
  await daemon.start();
  assert.equal(await use({ Authorization: `Bearer ${token}` }), 401, 'the logout is forgotten with the daemon');
  await p.done();
});

test('a tab that is opened beside one that is signed in is signed in, too', async () => {
  const p = await signedIn();
  await p.locator('#connection[data-kind=live]').waitFor();
  const next = await p.context().newPage();
  await next.goto(guarded + '/');
  await next.locator('#connection[data-kind=live]').waitFor();
  await p.done();
});

test('a page whose name was made to point here afterwards reads and begins nothing', async () => {
  // Chromium leads *.localhost to this machine; the page itself comes from the attacker.
  const rebound = new URL(guarded);
  rebound.hostname = 'rebound.localhost';
  const p = await page('/', { base: guarded });
  p.allowed.push(/.*/);
  await p.route(rebound.origin + '/', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>evil</title>' }));
  await p.goto(rebound.origin + '/');
  const tries = await p.evaluate(async () => {
    const ask = async (path, options) => {
      const r = await fetch(path, options);
      return `${r.status} ${(await r.json()).error.code}`;
    };
    const socket = new Promise((resolve) => {
      const s = new WebSocket(`ws://${location.host}/api/turns/active`);
      s.onopen = () => resolve('open');
      s.onerror = () => resolve('refused');
    });
    const json = { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer x' }, body: '{}' };
    return {
      read: await ask('/api/turns/active'), health: await ask('/api/health'), begin: await ask('/api/turns', json),
      login: await ask('/api/login', { ...json, body: '{"link":"x"}' }), mcp: await ask('/mcp', json), socket: await socket, session: String(sessionStorage.getItem('toolhost.session')),
    };
  });
  const no = '403 bad_host';
  assert.deepEqual(tries, { read: no, health: no, begin: no, login: no, mcp: no, socket: 'refused', session: 'null' });
  assert.equal(await turnsNow(), 0);
  await p.done();
});

test('who guesses is told to wait, and who is signed in goes on', async () => {
  const p = await signedIn();
  p.allowed.push(/.*/);
  await p.locator('#connection[data-kind=live]').waitFor();
  // The page guesses from where the person is, as the worst one can.
  const { statuses, after } = await p.evaluate(async () => {
    const guess = (n) => fetch('/api/whoami', { headers: { Authorization: `Bearer toolhost_aaaaaaaaaa_${'A'.repeat(24)}${String(n).padStart(2, 'B')}00000000` } });
    const all = [];
    for (let n = 0; n < 30; n++) all.push(await guess(n));
    return { statuses: all.map((r) => r.status), after: all.at(-1).headers.get('Retry-After') };
  });
  assert.equal(statuses[0], 401);
  assert.ok(statuses.filter((s) => s === 401).length <= 22, `too many guesses were looked at: ${statuses}`);
  assert.equal(statuses.at(-1), 429);
  assert.ok(Number(after) >= 1, `no word of when to come back: ${after}`);
  const replayed = await fetch(guarded + '/api/login', { method: 'POST', body: '{"link":"guessed"}', headers: { 'Content-Type': 'application/json' } });
  assert.equal(replayed.status, 429, 'links are guessed beside tokens');
  const own = await p.evaluate(() => fetch('/api/whoami', { headers: { Authorization: `Bearer ${sessionStorage.getItem('toolhost.session')}` } }).then((r) => r.status));
  assert.equal(own, 200, 'the person is shut out by the guesses');
  await p.done();
  await daemon.kill(); // the next test is not to wait
  await daemon.start();
});
