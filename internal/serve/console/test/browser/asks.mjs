// Questions: approve, deny, a form, a password, too late.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, host, page, textOf, until } from '../helper.mjs';

const cardOf = (p, tool) => p.locator('.ask', { has: p.locator('.ask-tool', { hasText: tool }) });

/** asked has a turn with one call, and a page with its card. */
async function asked(tool, args) {
  const turn = await host.begin({ agentId: 'asker' });
  const results = host.run(turn, [call(tool, args)]);
  const p = await page();
  const card = cardOf(p, tool);
  await card.waitFor();
  return { p, turn, card, result: async () => (await results)[0] };
}

test('an approval says what it is for, counts down, and is given', async () => {
  const { p, turn, card, result } = await asked('ask', { path: '/srv/out/a', text: 'done' });
  assert.match(await card.locator('.ask-arguments').innerText(), /"path": "\/srv\/out\/a"/);
  assert.match(await card.locator('.ask-policy').innerText(), /Network[\s\S]*as the host[\s\S]*\/srv\/data[\s\S]*\/srv\/out/);
  assert.match(await p.locator('#waiting').innerText(), /Waiting for you 1/);
  const spoken = p.locator('#spoken p', { hasText: 'question waits for you' });
  assert.equal(await spoken.textContent(), '1 question waits for you');
  await p.locator('.turn-waiting', { hasText: 'Waiting for you' }).waitFor();
  assert.match(await p.title(), /^\(1\) Live/);
  const left = () => card.locator('.ask-left').innerText();
  const first = await left();
  assert.match(first, /^(2m 00s|1m \d\ds) left$/);
  await p.waitForFunction((was) => document.querySelector('.ask-left').textContent !== was, first);
  await card.getByRole('button', { name: 'Approve' }).click();
  assert.equal((await result()).status, 'ok');
  await card.waitFor({ state: 'detached' });
  await p.locator('.toast', { hasText: 'Approved: ask' }).waitFor();
  await host.end(turn);
  await p.locator('#waiting').waitFor({ state: 'hidden' });
  assert.equal(await spoken.count(), 0);
  await p.done();
});

test('nothing waits for who is signed out', async () => {
  const { p, turn, card, result } = await asked('ask', {});
  p.allowed.push(/401/);
  await p.route('**/api/turns/active', (route) => route.fulfill({ status: 401, json: { error: { code: 'unauthorized', message: 'no' } } }));
  await p.locator('#connection[data-kind=signedOut]').waitFor();
  await p.locator('#waiting').waitFor({ state: 'hidden' });
  assert.equal(await p.locator('#spoken p', { hasText: 'for you' }).count(), 0);
  assert.match(await p.title(), /^Live/);
  await p.unroute('**/api/turns/active');
  await p.evaluate(() => dispatchEvent(new Event('online'))); // it asks at once
  await p.getByText('Connected', { exact: true }).waitFor();
  await p.locator('#waiting', { hasText: '1' }).waitFor();
  await card.getByRole('button', { name: 'Deny' }).click();
  assert.equal((await result()).status, 'denied');
  await host.end(turn);
  await p.done();
});

test('a question is shown by the roles: to answer without its turn, or only to see', async () => {
  const { p, turn, card, result } = await asked('ask', {});
  const as = async (...roles) => {
    await p.unroute('**/api/whoami');
    await p.route('**/api/whoami', (route) => route.fulfill({ json: { identity: 'token boss', roles } }));
    await p.reload();
    await card.waitFor();
  };
  await as('watch');
  await card.getByText('Somebody else with the role approve').waitFor();
  assert.equal(await card.getByRole('button').count(), 0);
  await p.getByRole('heading', { name: 'Waiting for an answer' }).waitFor();
  assert.ok(await p.locator('#waiting').isHidden());
  await p.route('**/api/turns/active', (route) => route.abort()); // which would show: nothing asks for it
  await as('approve');
  await p.getByText('Turns are shown to the roles').waitFor();
  await p.locator('#waiting', { hasText: '1' }).waitFor();
  await card.getByRole('button', { name: 'Approve' }).click();
  assert.equal((await result()).status, 'ok');
  await card.waitFor({ state: 'detached' });
  await host.end(turn);
  await p.done();
});

test('an approval for the turn asks no second time', async () => {
  const { p, turn, card, result } = await asked('ask', {});
  await card.getByRole('button', { name: 'Always' }).click();
  assert.equal((await result()).status, 'ok');
  assert.equal((await host.run(turn, [call('ask', { text: 'again' })]))[0].status, 'ok');
  await host.end(turn);
  await p.done();
});

test('what is denied does not run', async () => {
  const { p, turn, card, result } = await asked('wipe', { volume: 'v' });
  await card.getByRole('button', { name: 'Deny' }).click();
  const { status, reason } = await result();
  assert.deepEqual([status, reason], ['denied', 'user']);
  await p.locator('.call[data-tone=denied]', { hasText: 'Denied' }).waitFor();
  await host.end(turn);
  await p.done();
});

const wants = (to) => ({ question: { ID: to, Prompt: `reach wants ${to}`, Reach: to } });

test('a name that is not granted is approved once, or in this turn, or not, and the card says what else the tool may reach', async () => {
  const { p, turn, card, result } = await asked('reach', wants('api.example.com:443'));
  assert.match(await card.locator('.ask-prompt').innerText(), /^reach wants api\.example\.com:443$/);
  assert.match(await card.locator('.ask-policy').innerText(), /Network[\s\S]*pypi\.org:443, 10\.20\.0\.0\/16:5432, others after asking/);
  await card.getByRole('button', { name: 'Approve' }).click();
  assert.match((await result()).content[0].text, /value true, denied ""/);
  const answers = async (to, button) => {
    const results = host.run(turn, [call('reach', wants(to))]);
    if (button) {
      await card.waitFor();
      await card.getByRole('button', { name: button }).click();
    }
    return (await results)[0].content[0].text;
  };
  assert.match(await answers('api.example.com:443', 'Deny'), /value false|denied "user"/, 'once was once');
  assert.match(await answers('api.example.com:443', 'Always'), /value true/);
  assert.match(await answers('api.example.com:443'), /value true/, 'in this turn');
  assert.match(await answers('other.example.com:443', 'Deny'), /value false|denied "user"/, 'another name is another question');
  await host.end(turn);
  await p.done();
});

const schema = {
  type: 'object', required: ['place', 'n'],
  properties: {
    place: { enum: ['staging', 'production'], title: 'Place' }, n: { type: 'integer', minimum: 1, maximum: 9, title: 'How many' },
    dry: { type: 'boolean', title: 'Dry run' }, note: { type: 'string', title: 'Note' },
  },
};

test('a questionnaire is a form that checks, and sends what was chosen', async () => {
  const { p, turn, card, result } = await asked('survey', { question: { ID: 'q', Prompt: 'Where to?', Schema: schema } });
  await p.locator('.call[data-state=asking]', { hasText: 'Waiting for you' }).waitFor();
  await card.getByRole('button', { name: 'Send' }).click();
  await card.getByText('This is needed.').first().waitFor();
  assert.equal(await p.evaluate(() => document.activeElement.labels[0].textContent), 'Place', 'the focus goes to what is wrong');
  await card.getByLabel('Place').selectOption('production');
  await card.getByLabel('How many').fill('12');
  await card.getByRole('button', { name: 'Send' }).click();
  await card.getByText('At most 9.').waitFor();
  await card.getByLabel('How many').fill('3');
  await card.getByLabel('Dry run').check();
  await card.getByRole('button', { name: 'Send' }).click();
  assert.match((await result()).content[0].text, /value \{"place":"production","n":3,"dry":true\}/);
  await host.end(turn);
  await p.done();
});

const elicited = {
  type: 'object', required: ['colours', 'email'],
  properties: {
    colours: { type: 'array', title: 'Colours', description: 'At most two of them.', minItems: 1, maxItems: 2, items: { anyOf: [{ const: '#f00', title: 'Red' }, { const: '#0f0', title: 'Green' }, { const: '#00f', title: 'Blue' }] } },
    days: { type: 'array', title: 'Days', items: { type: 'string', enum: ['Monday', 'Tuesday'] }, default: ['Tuesday'] },
    size: { type: 'string', title: 'Size', oneOf: [{ const: 's', title: 'Small' }, { const: 'l', title: 'Large' }], default: 'l' },
    email: { type: 'string', format: 'email', title: 'Email' }, at: { type: 'string', format: 'date-time', title: 'When' },
  },
};

test('every form of MCP: several of a list with titles and without, defaults, formats', async () => {
  const { p, turn, card, result } = await asked('survey', { question: { ID: 'q', Prompt: 'What will it be?', Schema: elicited } });
  const send = card.getByRole('button', { name: 'Send' });
  await card.locator('button[type=submit][aria-disabled=false]').waitFor();
  await send.click();
  await card.getByText('Choose at least 1.').waitFor();
  assert.equal(await p.evaluate(() => document.activeElement.labels[0].textContent), 'Red', 'the focus goes to the first choice');
  for (const name of ['Red', 'Green', 'Blue']) await card.getByLabel(name).check();
  await card.getByLabel('Email').fill('ada');
  await card.getByLabel('When').fill('tomorrow');
  await send.click();
  for (const text of ['Choose at most 2.', 'Write an email address.', 'Write a date and time, such as 2026-07-28T12:30:00Z.']) await card.getByText(text).waitFor();
  await card.getByLabel('Green').uncheck();
  await card.getByLabel('Email').fill('ada@example.com');
  await card.getByLabel('When').fill('2026-07-28T12:30:00Z');
  await send.click();
  assert.match((await result()).content[0].text, /value \{"colours":\["#f00","#00f"\],"days":\["Tuesday"\],"size":"l","email":"ada@example.com","at":"2026-07-28T12:30:00Z"\}/);
  await host.end(turn);
  await p.done();
});

test('a password is typed unseen, and stays nowhere', async () => {
  const { p, turn, card, result } = await asked('login', { question: { ID: 'p', Prompt: 'The password of deploy', Secret: true } });
  const field = card.getByLabel('Secret');
  assert.deepEqual([await field.getAttribute('type'), await field.getAttribute('autocomplete')], ['password', 'off']);
  await card.locator('button[type=submit][aria-disabled=false]').waitFor();
  await field.fill('hunter2-hunter2');
  await field.press('Enter');
  assert.equal((await result()).content[0].text, 'value of 17 bytes, denied ""');
  await host.end(turn);
  await card.waitFor({ state: 'detached' });
  assert.doesNotMatch(await p.content(), /hunter2/);
  const kept = await p.evaluate(() => ({ ...localStorage, ...sessionStorage, at: location.href }));
  assert.doesNotMatch(JSON.stringify(kept), /hunter2/);
  await p.done();
});

test('an answer from elsewhere takes the card away, and one that is late says so', async () => {
  const { p, turn, card, result } = await asked('ask', {});
  const id = await card.getAttribute('data-ask');
  // The page learns of it only afterwards.
  await p.route('**/api/turns/active', (route) => route.abort());
  p.allowed.push(/ERR_FAILED/, /40[49]/);
  await host.answer(id, { approve: false });
  assert.equal((await result()).status, 'denied');
  await p.unroute('**/api/turns/active');
  await card.waitFor({ state: 'detached' });
  await host.end(turn);
  assert.match(await textOf(p), /Nothing waits for you/);
  await p.done();
});

test('a key denies the question that has the focus, unless keys are turned off', async () => {
  const { p, turn, card, result } = await asked('ask', {});
  const answers = [];
  p.on('request', (r) => r.url().endsWith('/answer') && answers.push(r.postData()));
  const shortcuts = async (on) => {
    await p.locator('#help').click();
    await p.getByText('deny the question that has the focus').waitFor();
    await p.getByLabel('Use single-key shortcuts').setChecked(on);
    await p.keyboard.press('Escape');
    await p.getByRole('dialog').waitFor({ state: 'hidden' });
    await card.locator('button[type=submit][aria-disabled=false]').focus();
    await p.keyboard.press('d');
  };
  await shortcuts(false);
  assert.deepEqual(answers, []);
  await shortcuts(true);
  assert.equal((await result()).status, 'denied');
  await host.end(turn);
  await p.done();
});

test('a yes is for the question that it was meant for, and not for the one that comes in its place', async () => {
  const turns = await Promise.all([1, 2, 3].map(() => host.begin({ agentId: 'asker' })));
  const results = turns.map((turn) => host.run(turn, [call('ask', {})]));
  const p = await page();
  const ready = p.locator('.ask button[type=submit][aria-disabled=false]');
  const answers = [];
  p.on('request', (r) => r.url().endsWith('/answer') && answers.push(r.postData()));
  await until('all take an answer', async () => await ready.count() === 3);

  // In the moment in which a card goes, somebody presses where it stood, and Enter.
  const { x, y, width, height } = await ready.first().boundingBox();
  await p.evaluate(([x, y]) => {
    new MutationObserver(() => {
      document.activeElement.closest('button')?.click();
      document.elementFromPoint(x, y).closest('button')?.click();
      window.pressed = document.activeElement.matches('.ask');
    }).observe(document.querySelector('.asks'), { childList: true });
  }, [x + width / 2, y + height / 2]);
  const gone = async (left) => {
    await until('the focus is on the next card', () => p.evaluate(() => window.pressed));
    await p.evaluate(() => (window.pressed = false));
    await until('the others take an answer', async () => await ready.count() === left);
    assert.equal(answers.length, 3 - left, 'what nobody has read was answered');
  };
  await p.mouse.click(x + width / 2, y + height / 2);
  await gone(2);
  await ready.first().focus();
  await p.keyboard.press('Enter');
  await gone(1);
  await p.getByRole('button', { name: 'Deny' }).click();
  const statuses = await Promise.all(results.map(async (r) => (await r)[0].status));
  assert.deepEqual(statuses.toSorted(), ['denied', 'ok', 'ok']);
  await Promise.all(turns.map((turn) => host.end(turn)));
  await p.done();
});

test('the key that has denied the last question does not deny the one that takes its focus', async () => {
  const turns = await Promise.all([1, 2].map(() => host.begin({ agentId: 'asker' })));
  const results = turns.map((turn) => host.run(turn, [call('ask', {})]));
  const p = await page();
  const ready = p.locator('.ask button[type=submit][aria-disabled=false]');
  const answers = [];
  p.on('request', (r) => r.url().endsWith('/answer') && answers.push(r.postData()));
  await until('both take an answer', async () => await ready.count() === 2);

  // In the moment in which the card goes, somebody presses the key again.
  await p.evaluate(() => {
    const key = () => new KeyboardEvent('keydown', { key: 'd', bubbles: true });
    new MutationObserver(() => {
      document.activeElement.dispatchEvent(key());
      window.pressed = document.activeElement.matches('.ask');
    }).observe(document.querySelector('.asks'), { childList: true });
  });
  await ready.last().focus();
  await p.keyboard.press('d');
  await until('the focus is on the card that is left', () => p.evaluate(() => window.pressed));
  await until('it takes an answer, or was given one', async () => answers.length > 1 || await ready.count() === 1);
  assert.equal(answers.length, 1, 'what nobody has read was denied');
  await ready.click();
  const statuses = await Promise.all(results.map(async (r) => (await r)[0].status));
  assert.deepEqual(statuses.toSorted(), ['denied', 'ok']);
  await Promise.all(turns.map((turn) => host.end(turn)));
  await p.done();
});
