import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Feed } from '../../static/js/feed.js';
import { mayAnswer } from '../../static/js/rights.js';
import { asks, createState } from '../../static/js/store.js';

const refused = async () => {
  throw Object.assign(new Error('refused'), { status: 403, code: 'forbidden' });
};

/** polled is a state after a feed's first question to a daemon. */
async function polled(daemon) {
  const state = createState();
  const said = await new Promise((resolve) => {
    const api = { now: () => 0, activeTurns: async () => [], pastTurns: async () => [], interactions: async () => [], ...daemon };
    const feed = new Feed({ api, state, changed() {}, told: (status) => {
      feed.stop();
      resolve(status);
    } });
    feed.run();
  });
  return { state, kind: said.kind };
}

const question = { interactionId: 'i', turnId: 'theirs', owner: 'token ci', expiresAt: new Date(60_000).toISOString(), timeoutMs: 60_000 };

test('who approves is shown the questions of turns that are not shown', async () => {
  for (const [roles, activeTurns] of [[['call', 'approve'], async () => []], [['approve'], refused]]) {
    const me = { identity: 'token boss', roles };
    const { state, kind } = await polled({ whoami: async () => me, activeTurns, interactions: async () => [question] });
    assert.deepEqual([kind, asks(state).map((ask) => ask.interactionId), mayAnswer(me, question)], ['live', ['i'], true], roles.join());
  }
});

test('what the roles do not show is not asked for', async () => {
  const { kind } = await polled({ whoami: async () => ({ identity: 'token w', roles: ['watch'] }), interactions: refused });
  assert.equal(kind, 'live');
  assert.equal((await polled({ whoami: refused })).kind, 'forbidden');
});

test('nobody is offered an answer that would be refused', () => {
  const may = (identity, ...roles) => mayAnswer({ identity, roles }, question);
  assert.deepEqual([may('token ci', 'call'), may('token ci', 'call', 'approve'), may('token w', 'watch'), may('token ci', 'admin'), mayAnswer(null, question)],
    [false, false, false, true, false]);
});

const running = (turnId, fields = {}) => ({ turnId, agentId: '', sessionId: '', startedAt: new Date(0).toISOString(), currentTools: [], pendingInteractions: [], ...fields });

/** byHand is a feed whose questions for the active turns are answered here, and whose streams go on until they are given up. */
function byHand(options, daemon = {}) {
  const state = createState();
  const open = new Set();
  const polls = [];
  let heard = () => {};
  const api = {
    now: () => 0, whoami: async () => ({ identity: 'i', roles: ['admin'] }), pastTurns: async () => [], interactions: async () => [],
    activeTurns: () => new Promise((answer) => {
      polls.push(answer);
      heard();
    }),
    watch: (id, after, signal) => new Promise((_, reject) => {
      open.add(id);
      signal.addEventListener('abort', () => {
        open.delete(id);
        reject(signal.reason);
      });
    }),
    ...daemon,
  };
  const feed = new Feed({ api, state, changed() {}, told() {}, ...options });
  /** next waits until the list is asked for again, and gives the way to answer. */
  const next = async () => {
    feed.poke();
    while (polls.length === 0) await new Promise((resolve) => (heard = resolve));
    return polls.shift();
  };
  feed.run();
  return { state, feed, open, next };
}

test('windows side by side share the streams, also where no answer comes through', async () => {
  let windows = 1;
  const { feed, open, next } = byHand({ windows: { count: async () => windows, leave() {} } });
  const three = ['a', 'b', 'c'].map((id) => running(id));
  (await next())(three);
  const answer = await next();
  assert.equal(open.size, 3);
  windows = 2;
  answer(three);
  await next(); // and is not answered
  assert.ok(open.size <= 1, [...open].join());
  feed.stop();
});

test('more windows than streams use each other’s connections in turn', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const list = ['a', 'b', 'c'].map((id) => running(id));
  const { feed, open } = byHand({ windows: { count: async () => 6, leave() {} } }, { activeTurns: async () => list });
  const seen = new Set();
  let used = 0;
  for (let i = 0; i < 600; i++) {
    await new Promise(setImmediate);
    for (const id of open) seen.add(id);
    used += open.size;
    mock.timers.tick(100);
  }
  assert.ok(used > 200 && used <= 300, `${used} of 600`);
  assert.equal(seen.size, 3);
  feed.stop();
  mock.timers.reset();
});

test('a page that is hidden keeps no questions and no turns that are over', async () => {
  const { state, feed, next } = byHand({ visible: () => false });
  (await next())([running('asks', { pendingInteractions: [question] })]);
  (await next())([]);
  for (let i = 0; i < 50; i++) (await next())([running(`t${i}`)]);
  const answer = await next();
  assert.deepEqual([asks(state).length, state.turns.size], [0, 1]);
  answer([]);
  feed.stop();
});

test('who is refused asks no further, and opens no streams, until somebody does something', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let refuse = false;
  let asked = 0;
  const kinds = [];
  const { feed, open, next } = byHand({ told: ({ kind }) => kinds.push(kind) }, {
    async whoami() {
      asked++;
      return refuse ? refused() : { identity: 'i', roles: ['admin'] };
    },
  });
  const settle = () => new Promise(setImmediate);
  (await next())([running('a'), running('b')]);
  const answer = await next();
  assert.equal(open.size, 2);
  refuse = true;
  answer(refused());
  for (let minute = 0; minute < 60; minute++) {
    await settle();
    mock.timers.tick(60_000);
  }
  await settle();
  assert.deepEqual([asked, open.size, kinds], [2, 0, ['live', 'forbidden', 'forbidden']]);
  refuse = false;
  (await next())([running('a'), running('b')]);
  await next();
  assert.deepEqual([asked, open.size], [3, 2]);
  feed.stop();
  mock.timers.reset();
});
