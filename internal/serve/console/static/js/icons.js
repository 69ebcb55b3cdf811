// Small pictures, drawn on a field of 16 by 16. They stand beside words and are
// hidden from readers.

const paths = {
  live: 'M1.5 8h3l2-5 3 10 2-5h3',
  history: 'M2.5 8a5.5 5.5 0 1 0 1.8-4.1M2.5 2v3h3M8 5v3.2l2.2 1.3',
  tools: 'M9.7 3.1a3.2 3.2 0 0 0 3.9 4.2L8 12.9a1.8 1.8 0 0 1-2.6-2.6L11 4.7M3 3l2.5 2.5',
  charts: 'M2 13.5h12M4 11V8M8 11V3.5M12 11V6',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  cross: 'M4 4l8 8M12 4l-8 8',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3.2l2 1.3',
  gauge: 'M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11l2.5-4',
  shield: 'M8 2l5 1.8v3.7c0 3-2 5.3-5 6.5-3-1.2-5-3.5-5-6.5V3.8L8 2ZM5.8 7.8h4.4',
  slash: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM4.2 11.8l7.6-7.6',
  dots: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  person: 'M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8ZM3 13.5c.4-2.6 2.4-4 5-4s4.6 1.4 5 4',
  stop: 'M4.5 4.5h7v7h-7Z',
  bolt: 'M9 1.8L3.8 9H8l-1 5.2L12.2 7H8l1-5.2Z',
  play: 'M5 3.5v9l7-4.5-7-4.5Z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  left: 'M10 3.5L5.5 8 10 12.5',
  right: 'M6 3.5L10.5 8 6 12.5',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1',
  moon: 'M13 9.6A5.5 5.5 0 1 1 6.4 3a4.4 4.4 0 0 0 6.6 6.6Z',
  auto: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 2.5v11M8 5h3.8M8 8h5.4M8 11h3.8',
  keys: 'M1.8 4.5h12.4v7.5H1.8ZM4.2 7h.01M6.7 7h.01M9.2 7h.01M11.7 7h.01M5 9.7h6',
  copy: 'M5.5 5.5h7.2v7.7H5.5ZM10.5 5.5V2.8H3.3v7.7h2.2',
  lock: 'M3.8 7.2h8.4v6H3.8ZM5.5 7.2V5a2.5 2.5 0 0 1 5 0v2.2',
  warn: 'M8 2.3l6 10.9H2L8 2.3ZM8 6.5v3.2M8 11.4h.01',
  folder: 'M2 4h4l1.3 1.6H14v7H2Z',
};

const svg = 'http://www.w3.org/2000/svg';

/** icon makes the picture of that name. */
export function icon(name) {
  const node = document.createElementNS(svg, 'svg');
  node.setAttribute('viewBox', '0 0 16 16');
  node.setAttribute('class', `icon icon-${name}`);
  node.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(svg, 'path');
  path.setAttribute('d', paths[name] ?? paths.dots);
  node.append(path);
  return node;
}
