// What all views must be: accessible in both themes, and no wider than a screen.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { host, page } from '../helper.mjs';
import { history, running } from '../demo.mjs';

const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** violations of WCAG 2.2 A and AA, and of what axe-core holds to be good. */
async function violations(p) {
  await p.evaluate(axe); // by the debugger: the policy would let no page do so
  const found = await p.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
}

/** wider are the elements that stick out of a narrow screen. */
const wider = () => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll('body *')].filter((n) => n.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((n) => `${n.tagName}.${n.className}`);
};

/** scenes are all views, with something in them. */
async function scenes() {
  await history(3);
  const [one] = await running();
  const { turns } = await host.get('/api/history/turns?limit=30');
  const { turnId } = turns.find((t) => t.state === 'ended' && t.calls > 7);
  const { calls } = await host.get(`/api/history/calls?turn=${turnId}`);
  const failed = calls.find((c) => c.status === 'oom');
  return [
    ['live', '#/live', '.ask', async (p) => {
      await p.locator('.call-head', { hasText: 'run_tests' }).click();
      await p.locator('.output', { hasText: 'line 60' }).waitFor();
    }],
    ['turns', '#/history', '.record'], ['calls', '#/history?of=calls', '.record'], ['nothing found', '#/history?status=unkillable', '.empty:not([hidden])'],
    ['turn', `#/history/${turnId}`, '.fall-row'], ['open turn', `#/history/${one}`, '.fall-row'],
    ['call', `#/history/${turnId}/${failed.toolCallId}`, '.evidence', (p) => p.getByText('measures enforced').click()],
    ['no such call', '#/history/nosuch/call', '.problem:not([hidden])'],
    ['tools', '#/tools', '.tool-link'],
    ['tool', '#/tools/work', '.trial', async (p) => {
      await p.locator('.trial').getByRole('button', { name: 'Run' }).click();
      await p.locator('.field-error:not([hidden])').first().waitFor();
    }],
    ['charts', '#/charts', '.chart .dot', (p) => p.locator('summary').first().click()],
    ['keyboard', '#/live', '#connection[data-kind=live]', (p) => p.locator('#help').click()],
  ];
}

test('every view is accessible, light and dark, and fits narrow screens', async (t) => {
  const all = await scenes();
  const p = await page('/', { viewport: { width: 1280, height: 900 } });
  p.allowed.push(/404/); // of the call that is not there
  for (const [name, path, ready, act] of all) {
    await t.test(name, async () => {
      await p.setViewportSize({ width: 1280, height: 900 });
      await p.evaluate(() => (location.hash = '#/charts')); // so that the view is made anew
      await p.evaluate((to) => (location.hash = to), path);
      await p.locator(ready).first().waitFor();
      await act?.(p);
      for (const colorScheme of ['light', 'dark']) {
        await p.emulateMedia({ colorScheme });
        assert.deepEqual(await violations(p), [], colorScheme);
      }
      for (const width of [390, 320]) {
        await p.setViewportSize({ width, height: 800 });
        assert.deepEqual(await p.evaluate(wider), [], `${width} pixels`);
      }
      if (['live', 'tool'].includes(name)) assert.deepEqual(await violations(p), [], 'narrow');
    });
  }
  await p.done();
});
