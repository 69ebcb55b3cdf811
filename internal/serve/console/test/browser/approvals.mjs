// Approvals for more than one call: given by a card, listed, and taken back.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { call, host, page, until } from '../helper.mjs';

test('an approval for a session is listed with its arguments, and can be taken back', async () => {
  const p = await page('/');
  const first = await host.begin({ sessionId: 'work' });
  const made = host.run(first, [call('ask', { text: 'the same' }, 'a')]);
  const card = p.locator('.ask', { hasText: 'ask' });
  await card.getByLabel('What the approval is for').selectOption('session');
  await card.getByRole('checkbox').check();
  await card.getByRole('button', { name: 'Always' }).click();
  assert.equal((await made)[0].status, 'ok');

  const second = await host.begin({ sessionId: 'work' });
  assert.equal((await host.run(second, [call('ask', { text: 'the same' }, 'b')]))[0].status, 'ok', 'the same call is asked about again');

  await p.getByRole('link', { name: 'Approvals' }).click();
  const listed = p.locator('.approval');
  await listed.waitFor();
  assert.equal(await listed.count(), 1);
  const words = (await listed.innerText()).replace(/\s+/g, ' ');
  assert.match(words, /ask.*the session work.*once, last/);
  assert.match(await listed.locator('pre').innerText(), /the same/);
  await listed.getByRole('button', { name: /^Revoke/ }).click();
  await p.locator('.empty', { hasText: 'Nothing is approved' }).waitFor();

  const third = await host.begin({ sessionId: 'work' });
  const asked = host.run(third, [call('ask', { text: 'the same' }, 'c')]);
  const question = await until('it is asked about again', async () => (await host.get('/api/interactions')).interactions[0]);
  await host.answer(question.interactionId, {});
  assert.equal((await asked)[0].status, 'denied');
  await Promise.all([first, second, third].map((t) => host.end(t)));
  await p.done();
});

test('an approval shows all digits of the arguments that it is for', async () => {
  const p = await page('/');
  const at = new Date().toISOString();
  const body = `{"approvals":[{"approvalId":"a","toolName":"ask","for":"identity","at":"${at}","uses":0,"arguments":{"id":1234567890123456789}}]}`;
  await p.route('**/api/approvals', (route) => route.fulfill({ contentType: 'application/json', body }));
  await p.getByRole('link', { name: 'Approvals' }).click();
  await p.locator('.approval pre', { hasText: '1234567890123456789' }).waitFor();
  await p.done();
});
