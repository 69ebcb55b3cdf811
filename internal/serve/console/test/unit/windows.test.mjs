import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Windows } from '../../static/js/windows.js';

/** browser plays the locks of one browser: shared ones, which are all granted. */
function browser() {
  const held = new Set();
  return {
    async query() {
      await new Promise(setImmediate); // what was asked for before comes first
      return { held: [{ name: 'of something else' }, ...held] };
    },
    async request(name, { mode }, use) {
      const lock = { name, mode };
      held.add(lock);
      await use(lock);
      held.delete(lock);
    },
  };
}

test('windows that are looked at are counted, each once', async () => {
  const locks = browser();
  const [one, two] = [new Windows(locks), new Windows(locks)];
  assert.equal(await one.count(), 1);
  assert.equal(await two.count(), 2);
  assert.equal(await one.count(), 2);
  two.leave();
  two.leave();
  assert.equal(await one.count(), 1);
  assert.equal(await two.count(), 2);
});

test('a window without locks counts itself', async () => {
  const refused = { request: async () => assert.fail('no'), query: async () => assert.fail('no') };
  for (const locks of [null, refused]) {
    const alone = new Windows(locks);
    assert.equal(await alone.count(), 1);
    alone.leave();
  }
});
