// Figures of many calls, for the charts. Pure.

import { buckets, quantile } from './draw.js';
import { byTone } from './status.js';

const slotCount = 40;
const slotSteps = [1, 5, 10, 30, 60, 300, 600, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400].map((x) => x * 1000);

/** over divides calls by when they were queued: [{from, to, sum by tone}]. */
export function over(calls) {
  if (calls.length === 0) return [];
  const times = calls.map((c) => Date.parse(c.queued));
  const first = times.reduce((a, b) => Math.min(a, b));
  const last = times.reduce((a, b) => Math.max(a, b));
  const step = slotSteps.find((x) => (last - first) / x < slotCount) ?? Math.ceil((last - first + 1) / slotCount);
  const begin = Math.floor(first / step) * step;
  const slots = Array.from({ length: Math.floor((last - begin) / step) + 1 }, (_, i) => ({ from: begin + i * step, to: begin + (i + 1) * step, counts: {} }));
  calls.forEach((c, i) => {
    const { counts } = slots[Math.floor((times[i] - begin) / step)];
    counts[c.status] = (counts[c.status] ?? 0) + 1;
  });
  return slots.map(({ from, to, counts }) => ({ from, to, sum: byTone(counts) }));
}

const ran = (c) => c.started && c.ended;

/** latency of the calls that ran: sorted times, buckets and quantiles. */
export function latency(calls) {
  const sorted = calls.filter(ran).map((c) => c.elapsedMs).sort((a, b) => a - b);
  return { n: sorted.length, buckets: buckets(sorted), p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), p99: quantile(sorted, 0.99), max: sorted.at(-1) ?? 0 };
}

/** byTool groups calls by their tool, the one with the most first. */
export function byTool(calls) {
  const groups = new Map();
  for (const c of calls) {
    if (!groups.has(c.toolName)) groups.set(c.toolName, []);
    groups.get(c.toolName).push(c);
  }
  return [...groups].map(([tool, list]) => {
    const { buckets: _, ...times } = latency(list);
    const counts = {};
    for (const c of list) counts[c.status] = (counts[c.status] ?? 0) + 1;
    return { tool, ...times, ran: times.n, n: list.length, sum: byTone(counts) };
  }).sort((a, b) => b.n - a.n || a.tool.localeCompare(b.tool));
}

/** memory of results: of each tool the peaks and the highest limit. */
export function memory(results) {
  const tools = new Map();
  for (const r of results) {
    if (!(r.usage.memoryPeakBytes > 0)) continue;
    const of = tools.get(r.tool) ?? { tool: r.tool, peaks: [], limit: 0 };
    of.peaks.push(r.usage.memoryPeakBytes);
    of.limit = Math.max(of.limit, r.limits.memoryBytes);
    tools.set(r.tool, of);
  }
  return [...tools.values()].sort((a, b) => Math.max(...b.peaks) - Math.max(...a.peaks));
}
