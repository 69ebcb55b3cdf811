// What a result proves: where the time went, limits against usage, how it was
// killed, what the sandbox enforced.

import { h } from './dom.js';
import { s } from './draw.js';
import { icon } from './icons.js';
import { count, printable, size, span } from './format.js';
import { reasonOf } from './status.js';

const rows = (pairs) => h('dl', { class: 'pairs' }, pairs.filter(Boolean).map(([name, value, strong]) =>
  h('div', {}, h('dt', {}, name), h('dd', { class: strong ? 'strong' : null }, value))));

const section = (title, ...children) => h('section', { class: 'block evidence' }, h('h2', {}, title), children);

/** whole has empty lists for those that a result leaves out. */
export function whole(result) {
  const { kill, sandbox } = result;
  const lists = (of, names) => Object.fromEntries(names.map((n) => [n, of[n] ?? []]));
  return {
    ...result, ...lists(result, ['warnings', 'files', 'content']),
    kill: { ...kill, ...lists(kill, ['signals']) },
    sandbox: { ...sandbox, ...lists(sandbox, ['read', 'write', 'enforced', 'degraded', 'secrets']) },
  };
}

/** bars divide the time of the call into what it was spent on. */
export function bars(result) {
  const t = result.timing;
  const list = [['queue', 'Queued', t.queueMs], ['ask', 'Waiting for a human', t.humanWaitMs], ['start', 'Starting', t.startMs], ['run', 'Running', t.runMs], ['grace', 'Grace', t.graceMs], ['drain', 'Drain', t.drainMs]];
  const whole = list.reduce((sum, [, , ms]) => sum + ms, 0);
  let x = 0;
  const rects = list.map(([kind, , ms]) => {
    const width = whole > 0 ? (ms / whole) * 1000 : 0;
    x += width;
    return ms > 0 ? s('rect', { x: x - width, width: Math.max(2, width), y: 0, height: 14, class: `part part-${kind}` }) : null;
  });
  return section('Time',
    s('svg', { viewBox: '0 0 1000 14', preserveAspectRatio: 'none', class: 'time-bar', 'aria-hidden': 'true' }, rects),
    rows([...list.filter(([, , ms]) => ms > 0).map(([kind, name, ms]) => [h('span', { class: 'part-name' },
      s('svg', { width: 10, height: 10, 'aria-hidden': 'true' }, s('rect', { width: 10, height: 10, rx: 2, class: `part part-${kind}` })), name), span(ms)]),
    ['Timeout', t.timeoutMs === null ? 'infinite' : span(t.timeoutMs)],
    t.requestedTimeoutMs !== null && t.requestedTimeoutMs !== t.timeoutMs ? ['Asked for', span(t.requestedTimeoutMs) + (t.clamped ? ', clamped' : '')] : null,
    t.source ? ['Decided by', printable([t.source, t.sourceDetail].filter(Boolean).join(', '))] : null,
    t.profile ? ['Profile', printable(t.profile)] : null,
    t.softBudgetMs > 0 ? ['Soft budget', span(t.softBudgetMs)] : null]));
}

/** usage sets what was used against what was allowed. */
export function usage(result) {
  const { usage: u, limits: l, output: o } = result;
  const seen = o.stdout.seenBytes + o.stderr.seenBytes + o.content.seenBytes;
  const cpu = u.cpuUserMs + u.cpuSystemMs;
  return section('Limits against usage',
    meter('Memory, peak', u.memoryPeakBytes, l.memoryBytes, size),
    meter('Processes, peak', u.pidsPeak, l.pids, String),
    meter('CPU time', cpu, l.cpuTimeMs, span),
    meter('Output in all', seen, l.outputTotalBytes, size),
    rows([
      l.cpuPercent > 0 ? ['CPU quota', `${l.cpuPercent} %`] : null,
      u.ioReadBytes + u.ioWriteBytes > 0 ? ['Read, written', `${size(u.ioReadBytes)}, ${size(u.ioWriteBytes)}`] : null,
      l.workspaceBytes > 0 ? ['Workspace', `at most ${size(l.workspaceBytes)}`] : null,
      l.openFiles > 0 ? ['Open files', `at most ${l.openFiles} a process`] : null,
      u.oomEvents > 0 ? ['Out of memory', count(u.oomEvents, 'time'), true] : null,
      u.pidsLimitHits > 0 ? ['Process limit hit', count(u.pidsLimitHits, 'time'), true] : null,
      u.ancestorOomKills + u.ancestorPidsLimitHits > 0 ? ['Host totals hit', count(u.ancestorOomKills + u.ancestorPidsLimitHits, 'time'), true] : null,
    ]));
}

function meter(name, used, limit, show) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0;
  const tone = part >= 1 ? 'failed' : part > 0.85 ? 'slow' : 'accent';
  const words = limit > 0 ? `${show(used)} of ${show(limit)}` : `${show(used)}, no limit`;
  return h('div', { class: 'meter', data: { tone } }, h('span', {}, name), h('span', { class: 'meter-words' }, words),
    s('svg', { viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true', class: limit > 0 ? null : 'unlimited' },
      s('rect', { width: 100, height: 4, class: 'meter-field' }), s('rect', { width: Math.max(part * 100, used > 0 && limit > 0 ? 0.8 : 0), height: 4, class: 'meter-used' })));
}

/** facts are how it ended: kill, exit, advice. */
export function facts(result) {
  const { kill, exit, retry, where } = result;
  const us = (n) => span(n / 1000);
  const killed = kill.stage !== 'none' || kill.survivors > 0;
  return [
    section('End', rows([
      ['Killed', killed ? { term: 'SIGTERM was enough', kill: 'SIGKILL' }[kill.stage] ?? kill.stage : 'no, it ended by itself'],
      kill.cause ? ['Cause', reasonOf(kill.cause)] : null,
      kill.signals.length > 0 ? ['Signals', printable(kill.signals.join(', '))] : null,
      ['Processes gone', String(kill.reaped)],
      kill.survivors > 0 ? ['Survivors', String(kill.survivors), true] : null,
      kill.termLatencyUs > 0 ? ['To SIGTERM', us(kill.termLatencyUs)] : null,
      // What is left of a call that has ended is cleared away by SIGKILL, too.
      kill.latencyUs > 0 ? [kill.stage === 'kill' ? 'SIGKILL to gone' : 'What it left gone in', us(kill.latencyUs)] : null,
      exit.code !== null && exit.code !== undefined ? ['Exit code', String(exit.code), exit.code !== 0] : null,
      exit.signal ? ['Signal', printable(exit.signal), !killed] : null,
      result.code ? ['gRPC view', result.code] : null,
      result.decider ? ['Decided by', result.decider] : null,
      where ? ['Worker', printable(where.worker) + (where.attempt > 1 ? `, after ${count(where.attempt - 1, 'other')}` : '')] : null,
      where?.stillRunning ? ['Still running', where.stillRunning, where.stillRunning !== 'no'] : null,
    ])),
    section('Another try', rows([
      ['Safe to call again', retry.retryable ? 'yes' : 'not known to be'],
      ['Side effects', retry.sideEffects],
      retry.suggestedTimeoutMs ? ['Suggested timeout', span(retry.suggestedTimeoutMs)] : null,
    ]), retry.hint ? h('p', { class: 'about' }, printable(retry.hint)) : null),
  ];
}

/** receipt is what the sandbox has really enforced. */
export function receipt(result) {
  const b = result.sandbox;
  const paths = (list) => (list.length === 0 ? 'nothing beyond its own' : h('ul', { class: 'paths' }, list.map((p) => h('li', {}, h('code', {}, printable(p))))));
  const bare = b.tier === 'none';
  if (!b.tier) return section('Sandbox', h('p', { class: 'muted' }, 'It never ran in one.'));
  return section('Sandbox receipt',
    rows([
      ['Tier', bare ? 'none: all rights of the daemon' : b.tier, bare],
      ['Network', b.grants ? paths(b.grants) : b.network || 'none', b.network === 'host'],
      ['Reads', paths(b.read)], ['Writes', paths(b.write), b.write.length > 0],
      b.data ? ['Data', h('code', {}, printable(b.data))] : null,
      b.secrets.length > 0 ? ['Secrets', printable(b.secrets.join(', '))] : null,
      ['cgroup', printable(b.cgroup)], ['User id', String(b.uid)], b.landlockAbi > 0 ? ['Landlock', `ABI ${b.landlockAbi}`] : null,
      b.shell ? ['Shell', 'yes', true] : null,
      result.sha256 ? ['SHA-256', h('code', { class: 'hash' }, result.sha256)] : null,
    ]),
    b.enforced.length > 0 ? h('details', {}, h('summary', {}, `${count(b.enforced.length, 'measure')} enforced`), h('ul', { class: 'enforced' }, b.enforced.map((e) => h('li', {}, printable(e))))) : null,
    b.degraded.map((d) => h('div', { class: 'degraded' }, icon('warn'), h('div', {}, h('strong', {}, printable(d.feature)), ' is not enforced: ', printable(d.reason), d.remedy ? h('p', { class: 'about' }, printable(d.remedy)) : null))));
}

/** boundsOf are the limits of a call's network in words; 0 is no limit. */
function boundsOf(l) {
  return [
    `${count(l.connections, 'connection')} at once`, l.totalConnections > 0 && `${l.totalConnections} in all`,
    l.sentBytes > 0 && `${size(l.sentBytes)} sent`, l.receivedBytes > 0 && `${size(l.receivedBytes)} received`,
    l.bytesPerSecond > 0 && `${size(l.bytesPerSecond)} a second`, `${span(l.idleMs)} idle`, `${span(l.connectTimeoutMs)} to connect`,
  ].filter(Boolean).join(', ');
}

/** network is what a call with network grants has reached, and what was refused. */
export function network(result) {
  const n = result.network;
  if (!n || n.mode !== 'grants') return null;
  const place = (f) => [f.name, f.address, f.port ? `port ${f.port}` : ''].filter(Boolean).join(' ');
  const flows = n.flows.map((f) => h('li', {}, h('code', {}, printable(place(f))),
    ` ${count(f.connections, 'connection')}, ${size(f.sentBytes)} sent, ${size(f.receivedBytes)} received`, f.via ? ', by a proxy' : '', f.error ? `: ${printable(f.error)}` : ''));
  const refused = n.refused.map((f) => h('li', {}, h('code', {}, printable(place(f))), ` ${f.count === 1 ? 'once' : `${f.count} times`}: ${printable(f.why)}`));
  return section('Network',
    rows([
      ['Reached', flows.length > 0 ? h('ul', { class: 'paths' }, flows) : 'nothing'],
      ['Refused', refused.length > 0 ? h('ul', { class: 'paths' }, refused) : 'nothing', refused.length > 0],
      n.moreFlows || n.moreRefused ? ['Left out', `${n.moreFlows || 0} reached, ${n.moreRefused || 0} refused`] : null,
      n.unreachable > 0 ? ['Unreachable', `${n.unreachable} attempts that the kernel refused inside`] : null,
      n.error ? ['Not complete', printable(n.error), true] : null,
      result.limits.network ? ['Limits', boundsOf(result.limits.network)] : null,
    ]),
    n.shared ? h('p', { class: 'about' }, 'Its process serves other calls, too: what they did meanwhile is in here.') : null);
}
