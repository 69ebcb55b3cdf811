// Words and numbers as people read them. Pure: no clock, no document.

/** count is "1 call", "2 calls". */
export function count(n, one, many = one + 's') {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}

const pad = (n) => String(n).padStart(2, '0');

/** timer is a running time in whole seconds: 4s, 1m 05s, 2h 03m. */
export function timer(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
  return `${Math.floor(s / 3600)}h ${pad(Math.floor(s / 60) % 60)}m`;
}

/** span is a measured time, as exact as it is worth: 85 ms, 1.23 s, 1m 05s. */
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return ms <= 0 ? '0 ms' : `${Math.round(ms * 1000)} µs`;
  if (ms < 10 && !Number.isInteger(ms)) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000 && ms % 1000 === 0) return `${ms / 1000} s`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return timer(ms);
}

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** size is 1.5 MiB, 812 bytes. */
export function size(n) {
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  if (unit === 0 && n === 1) return '1 byte';
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** clock is the local time of day, 14:03:22. */
export function clock(ms) {
  const d = new Date(ms);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

/** stamp is the local day and time; the day is left out if it is that of now. */
export function stamp(ms, now) {
  const d = new Date(ms);
  const today = now !== undefined && new Date(now).toDateString() === d.toDateString();
  return today ? clock(ms) : `${d.getDate()} ${months[d.getMonth()]} ${clock(ms)}`;
}

/** pace says how long a call has run: ok under 10 s, slow to 30 s, late over. */
export function pace(ms) {
  if (ms < 10_000) return 'ok';
  return ms <= 30_000 ? 'slow' : 'late';
}

// What controls, shows as nothing, or changes how other characters look, as in the
// terminal: internal/terminal/escape.go.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\u{e0000}-\u{e0fff}]/gu;

// Of these, what ordinary output has: soft hyphens, what joins letters and emoji or
// picks how one looks, and the blanks of plots.
const ofWriting = /[\u00ad\u200c\u200d\u2800\ufe00-\ufe0f]/u;

function mark(c) {
  const code = c.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27e8${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

/**
 * printable shows the characters of a text that control or are unseen, so that none
 * of them can change how the rest looks, or be approved by a human who does not see
 * it. Tabs and line feeds stay.
 */
export function printable(text) {
  return text.replace(/\r\n/g, '\n').replace(unseen, mark);
}

/** readable is printable for what a tool has written: what writing needs stays. */
export function readable(text) {
  return text.replace(/\r\n/g, '\n').replace(unseen, (c) => (ofWriting.test(c) ? c : mark(c)));
}

/** word is a printable text on one line, whatever is in it. */
export const word = (text) => printable(text).replace(/[\t\n]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));

/** line is the last line of an output that is not empty, cut at most characters. */
export function line(text, most = 200) {
  const last = readable(text).trimEnd().split('\n').at(-1).trim();
  return last.length > most ? last.slice(0, most) + '…' : last;
}

/** json is a value on several lines. */
export function json(value) {
  return value === undefined ? '' : JSON.stringify(value, null, 2);
}

/** brief is an id that fits a heading: its end tells ids apart. */
export function brief(id, most = 14) {
  return id.length <= most ? id : '…' + id.slice(1 - most);
}

/** head is the beginning of a name, cut at most characters. */
export function head(text, most) {
  const all = [...text];
  return all.length <= most ? text : all.slice(0, most - 1).join('') + '…';
}
