// Draws: SVG made of data, by a few small functions. Colours come from classes.

const ns = 'http://www.w3.org/2000/svg';

/** s makes an SVG element; text children go in as text. */
export function s(tag, attributes, ...children) {
  const node = document.createElementNS(ns, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/** picture is an SVG of a size in pixels, with a name for readers. */
export function picture(width, height, name, ...children) {
  return s('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': name, class: 'picture' }, ...children);
}

/** ticks are round numbers from 0 to max, about n of them. Pure. */
export function ticks(max, n = 5, bases = [1, 2, 5]) {
  if (!(max > 0)) return [0];
  const raw = max / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([...bases, 10].find((b) => b * power >= raw) ?? 10);
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => i * step);
}

const second = 1000;
const spans = [1, 2, 5, 10, 20, 50, 100, 200, 500, second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second,
  60 * second, 120 * second, 300 * second, 600 * second, 900 * second, 1800 * second, 3600 * second, 7200 * second, 21600 * second, 43200 * second, 86400 * second];

/** timeTicks are round times from 0 to max, in ms. Pure. */
export function timeTicks(max, n = 6) {
  const step = spans.find((x) => max / x <= n) ?? Math.ceil(max / n);
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** quantile of sorted numbers; the nearest rank. Pure. */
export function quantile(sorted, q) {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];
}

/** buckets counts times in steps that grow, from 1 ms on. Pure. */
export function buckets(values) {
  const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, Infinity];
  const list = bounds.map((to, i) => ({ from: i === 0 ? 0 : bounds[i - 1], to, n: 0 }));
  for (const v of values) list.find((b) => v < b.to || b.to === Infinity).n++;
  const first = list.findIndex((b) => b.n > 0);
  const last = list.findLastIndex((b) => b.n > 0);
  return first < 0 ? [] : list.slice(first, last + 1);
}

/** fit cuts a text to a width; measure gives that of a text. Pure. */
export function fit(text, width, measure) {
  if (measure(text) <= width) return text;
  const all = [...text];
  let low = 0;
  let high = all.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(all.slice(0, middle).join('') + '…') <= width) low = middle;
    else high = middle - 1;
  }
  return all.slice(0, low).join('') + '…';
}

/** measureIn measures texts in a font, in pixels. */
export function measureIn(font) {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = font;
  return (text) => pen.measureText(text).width;
}

/**
 * onWidth draws again whenever an element's width changes; it returns how to
 * stop that. draw(width) gets whole pixels.
 */
export function onWidth(node, draw) {
  let last = 0;
  const watcher = new ResizeObserver(() => {
    const width = Math.floor(node.clientWidth);
    if (width === last || width === 0) return;
    last = width;
    requestAnimationFrame(() => draw(width));
  });
  watcher.observe(node);
  return () => watcher.disconnect();
}
