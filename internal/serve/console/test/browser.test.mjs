// Uses the console in a browser as people do: one file for each part of it.

import { after, afterEach, before } from 'node:test';
import { close, daemon, host, launch } from './helper.mjs';

before(launch);
// What a test has left behind is not to trouble the next one.
afterEach(async () => {
  const { turns } = await host.get('/api/turns/active');
  await Promise.all(turns.map((t) => host.abort(t.turnId).then(() => host.abort(t.turnId)).then(() => host.end(t.turnId)).catch(() => {})));
});
after(async () => {
  await close();
  await daemon.kill(); // so that no turn is waited for
});

for (const name of process.env.CONSOLE_ONLY?.split(',') ?? ['asks', 'approvals', 'live', 'load', 'records', 'looks', 'connection', 'attacks']) {
  await import(`./browser/${name}.mjs`);
}
