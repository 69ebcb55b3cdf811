// The pictures of the charts view: columns, histogram, ranges, bars, dots. Each
// takes a width in pixels and gives an SVG.

import { fit, measureIn, picture, s, ticks } from './draw.js';
import { clock, size, span, stamp, word } from './format.js';
import { toneNames, tones } from './status.js';

const left = 44;
const rowPx = 26;
export const maxTools = 12;

/** labels is the room for names of tools beside a picture. */
const labels = (width) => Math.min(180, Math.max(84, width * 0.26));

const grid = (x1, x2, y1, y2) => s('line', { x1, x2, y1, y2, class: 'grid-line' });
const text = (x, y, words, anchor = 'start', cls = 'axis-text') => s('text', { x, y, class: cls, 'text-anchor': anchor }, words);
const hover = (words) => s('title', {}, words);

/** nameMeasure measures as the style sheet has names (name-text). */
const nameMeasure = () => measureIn(`12.5px ${getComputedStyle(document.documentElement).getPropertyValue('--sans')}`);

/** toolName ends left of where the picture begins, and is cut to begin inside. */
const toolName = (x0, y, name, measure) => text(x0 - 10, y, fit(word(name), x0 - 12, measure), 'end', 'name-text');

/** columns: outcomes over time; slots: [{from, to, sum}], sum by tone. */
export function columns(width, slots, name) {
  const height = 180;
  const bottom = height - 22;
  const most = Math.max(1, ...slots.map((b) => tones.reduce((n, t) => n + (b.sum[t] ?? 0), 0)));
  const y = (n) => bottom - (n / most) * (bottom - 10);
  const step = Math.min(64, (width - left) / slots.length);
  const parts = slots.map((slot, i) => {
    let n = 0;
    return s('g', {}, hover(`${clock(slot.from)}: ${inTones(slot.sum)}`), tones.filter((t) => slot.sum[t]).map((t) => {
      n += slot.sum[t];
      return s('rect', { x: left + i * step + 1, width: Math.max(1, step - 2), y: y(n), height: y(n - slot.sum[t]) - y(n), class: `fill-${t}` });
    }));
  });
  const scale = ticks(most, 4).filter(Number.isInteger).map((n) => [grid(left, width, y(n), y(n)), text(left - 6, y(n) + 4, String(n), 'end')]);
  const marks = every(slots, Math.max(1, Math.floor((step * slots.length) / 80))).map(([slot, i]) => text(left + i * step + 1, height - 6, moment(slot)));
  return picture(width, height, name, scale, parts, marks);
}

/** moment is when a slot begins, as exact as its length. */
function moment({ from, to }) {
  if (to - from < 60_000) return clock(from);
  return to - from < 10_800_000 ? clock(from).slice(0, 5) : stamp(from).split(':')[0] + 'h';
}

/** every gives about n items of a list, evenly, each with its place. */
function every(list, n) {
  const step = Math.max(1, Math.ceil(list.length / n));
  return list.map((item, i) => [item, i]).filter(([, i]) => i % step === 0);
}

const inTones = (sum) => tones.filter((t) => sum[t]).map((t) => `${sum[t]} ${toneNames[t].toLowerCase()}`).join(', ') || 'none';

/** histogram: how many calls took how long; list: buckets of draw.js. */
export function histogram(width, list, name) {
  const height = 180;
  const bottom = height - 22;
  const most = Math.max(1, ...list.map((b) => b.n));
  const y = (n) => bottom - (n / most) * (bottom - 18);
  const step = Math.min(90, (width - left) / list.length);
  const scale = ticks(most, 4).filter(Number.isInteger).map((n) => [grid(left, width, y(n), y(n)), text(left - 6, y(n) + 4, String(n), 'end')]);
  const rects = list.map((b, i) => s('g', {}, hover(`${span(b.from)} to ${b.to === Infinity ? 'more' : span(b.to)}: ${b.n}`),
    b.n > 0 ? s('rect', { x: left + i * step + 1, width: step - 2, y: y(b.n), height: bottom - y(b.n), class: 'fill-accent' }) : null));
  const marks = every(list, Math.max(2, Math.floor((list.length * step) / 64))).map(([b, i]) => text(left + i * step, height - 6, span(b.from), i === 0 ? 'start' : 'middle'));
  return picture(width, height, name, scale, rects, s('line', { x1: left, x2: left + list.length * step, y1: bottom, y2: bottom, class: 'base-line' }), marks);
}

/** ranges: of each tool p50 to p95, on a logarithmic axis. */
export function ranges(width, list, name) {
  const x0 = labels(width);
  const measure = nameMeasure();
  const right = width - 12;
  const low = Math.max(1, Math.min(...list.map((t) => t.p50)));
  const from = 10 ** Math.floor(Math.log10(low));
  const to = Math.max(10 * from, 10 ** Math.ceil(Math.log10(Math.max(...list.map((t) => t.max), 2))));
  const x = (ms) => x0 + ((Math.log10(Math.max(from, ms)) - Math.log10(from)) / (Math.log10(to) - Math.log10(from))) * (right - x0);
  const height = list.length * rowPx + 24;
  const powers = Array.from({ length: Math.round(Math.log10(to / from)) + 1 }, (_, i) => from * 10 ** i);
  const crowded = (right - x0) / powers.length < 56;
  const axis = powers.map((p, i) => [grid(x(p), x(p), 0, height - 20), crowded && i % 2 === 1 ? null : text(x(p), height - 6, span(p), i === powers.length - 1 ? 'end' : 'middle')]);
  const rows = list.map((t, i) => {
    const y = i * rowPx + rowPx / 2;
    return s('g', {}, hover(`${t.tool}: p50 ${span(t.p50)}, p95 ${span(t.p95)}, longest ${span(t.max)}`),
      toolName(x0, y + 4, t.tool, measure),
      s('line', { x1: x(t.p50), x2: x(t.p95), y1: y, y2: y, class: 'range-line' }),
      s('line', { x1: x(t.max), x2: x(t.max), y1: y - 5, y2: y + 5, class: 'range-max' }),
      s('circle', { cx: x(t.p50), cy: y, r: 5, class: 'fill-accent' }), s('circle', { cx: x(t.p95), cy: y, r: 4, class: 'range-end' }));
  });
  return picture(width, height, name, axis, rows);
}

/** bars: of each tool how its calls ended. */
export function bars(width, list, name) {
  const x0 = labels(width);
  const measure = nameMeasure();
  const x1 = width - 44;
  const most = Math.max(1, ...list.map((t) => t.n));
  const rows = list.map((t, i) => {
    const y = i * rowPx;
    let x = x0;
    const parts = tones.filter((tone) => t.sum[tone]).map((tone) => {
      const w = (t.sum[tone] / most) * (x1 - x0);
      x += w;
      return s('rect', { x: x - w, y: y + 5, width: Math.max(1, w - 1), height: rowPx - 10, class: `fill-${tone}` });
    });
    return s('g', {}, hover(`${t.tool}: ${inTones(t.sum)}`), toolName(x0, y + rowPx / 2 + 4, t.tool, measure), parts, text(x + 6, y + rowPx / 2 + 4, String(t.n)));
  });
  return picture(width, list.length * rowPx + 4, name, rows);
}

/** dots: of each tool the memory peaks of its calls, and its limit. */
export function dots(width, list, name) {
  const x0 = labels(width);
  const measure = nameMeasure();
  const right = width - 26;
  const most = Math.max(...list.flatMap((t) => t.peaks), ...list.map((t) => t.limit), 1);
  const mib = 1024 * 1024;
  const x = (bytes) => x0 + (bytes / most) * (right - x0);
  const height = list.length * rowPx + 24;
  const axis = ticks(most / mib, Math.max(2, Math.floor((right - x0) / 90)), [1, 2, 4, 5]).map((n) => [grid(x(n * mib), x(n * mib), 0, height - 20), text(x(n * mib), height - 6, n === 0 ? '0' : size(n * mib), 'middle')]);
  const rows = list.map((t, i) => {
    const y = i * rowPx + rowPx / 2;
    return s('g', {}, hover(`${t.tool}: up to ${size(Math.max(...t.peaks))}${t.limit ? `, limit ${size(t.limit)}` : ''}`),
      toolName(x0, y + 4, t.tool, measure),
      t.limit ? s('line', { x1: x(t.limit), x2: x(t.limit), y1: y - 8, y2: y + 8, class: 'limit-line' }) : null,
      t.peaks.map((p) => s('circle', { cx: x(p), cy: y, r: 4.5, class: 'dot' })));
  });
  return picture(width, height, name, axis, rows);
}

