import assert from 'node:assert/strict';
import { test } from 'node:test';
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
