// A daemon with something to see: turns that are over, and some that run.

import { call, daemon, host } from './helper.mjs';

const words = ['Reading the index', 'Comparing 3 of 8 revisions', 'Fetching https://example.org/a/rather/long/path?with=a&query=string'];

async function past(i) {
  const turn = await host.begin({ agentId: ['researcher', 'release-bot', 'support-agent'][i % 3], sessionId: `session-${1000 + i}` });
  await host.run(turn, [
    call('web_search', { ms: 40 + 30 * (i % 7), text: 'Ten results for "landlock abi"', peakMib: 18 + 2 * i }),
    call('read_file', { ms: 5 + i, text: '# Changelog\n\n- one\n- two', peakMib: 9 }),
    call('run_tests', { ms: 120 + 60 * (i % 4), lines: 4, everyMs: 20, says: 'ok  package', text: 'PASS', peakMib: 90 + 20 * (i % 5) }),
    ...(i % 3 === 0 ? [call('fetch_page', { ms: 150, status: 'timeout', reason: 'deadline', message: '[TIMEOUT] fetch_page took longer than 30 s. All 3 of its processes were killed.', peakMib: 40 })] : []),
    ...(i % 4 === 0 ? [call('deny', {})] : []),
    ...(i % 5 === 0 ? [call('compile', { ms: 90, status: 'oom', message: '[OOM] compile used its 256 MiB up.', peakMib: 256, stderr: 'c++: fatal error: Killed signal terminated program cc1plus\n' })] : []),
  ]);
  await host.run(turn, [call('write_report', { ms: 60, text: 'Done.', peakMib: 22 }), call('read_file', { ms: 4, status: 'tool_error', message: '[FAILED] read_file: no such file' })]);
  await host.end(turn);
}

/** history fills the journal. */
export async function history(n = 12) {
  for (let i = 0; i < n; i++) await past(i);
}

/** running has turns that go on until they are aborted. */
export async function running() {
  const one = await host.begin({ agentId: 'researcher', sessionId: 'session-2041' });
  host.run(one, [
    call('web_search', { ms: 30, text: 'Ten results for "cgroup v2 freezer"' }),
    call('run_tests', { hold: 'tests', lines: 60, steps: 12, of: 20, everyMs: 10, says: words[1], stderr: 'warning: \u001b[33mdeprecated\u001b[0m <b>flag</b>\n', timeoutMs: 120_000 }),
    call('fetch_page', { hold: 'page', steps: 1, says: words[2], timeoutMs: 60_000 }),
    call('summarise_a_very_long_document_in_several_languages_and_formats', { hold: 'long', timeoutMs: 30_000 }),
    call('read_file', { ms: 20, status: 'tool_error', message: 'no such file', reason: '' }),
    ...['translate', 'render', 'index', 'lint', 'publish', 'notify'].map((t) => call(t, { hold: t })),
  ]);
  const two = await host.begin({ agentId: 'release-bot', sessionId: 'nightly' });
  host.run(two, [call('ask', { path: '/srv/out/release-2.4.tar.gz', sign: true, channels: ['stable', 'beta'] }), call('compile', { hold: 'compile', timeoutMs: 900_000, lines: 3, says: 'cc -O2' })]);
  const three = await host.begin({ agentId: 'support-agent-with-a-name-that-is-longer-than-any-sensible-person-would-choose-for-it', sessionId: 'a'.repeat(60) });
  host.run(three, [
    call('wipe', { volume: 'scratch-07' }),
    call('survey', { question: { ID: 'q', Prompt: 'Which environment shall I deploy to?', Schema: { type: 'object', required: ['environment'], properties: { environment: { enum: ['staging', 'production'], title: 'Environment' }, replicas: { type: 'integer', minimum: 1, maximum: 9, default: 3, title: 'Replicas' }, dry: { type: 'boolean', title: 'Dry run', description: 'change nothing' } } } } }),
    call('login', { question: { ID: 'p', Prompt: 'The password of deploy@example.org', Secret: true } }),
  ]);
  return [one, two, three];
}

export { daemon };

/** reached is what a call with network grants has to show. */
export const reached = {
  mode: 'grants', unreachable: 3, moreRefused: 2,
  flows: [
    { name: 'pypi.org', address: '151.101.0.223', port: 443, connections: 2, sentBytes: 2048, receivedBytes: 3 << 20, firstMs: 20, lastMs: 900 },
    { name: 'down.example.com', address: '', port: 443, connections: 1, sentBytes: 0, receivedBytes: 0, firstMs: 30, lastMs: 40, error: 'connection refused', via: 'proxy' },
  ],
  refused: [{ name: 'telemetry.example.com', count: 4, why: 'not granted' }, { name: 'pypi.org', address: '', port: 443, count: 1, why: 'the TLS server name is <b>evil</b>.example' }],
};
