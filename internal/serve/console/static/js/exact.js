// Numbers with all their digits: JSON may hold more of them than a number here
// does. Pure.

/** able: whether this browser can say how a number was written, and write it so. */
export const able = typeof JSON.rawJSON === 'function';

/** isExact: a number that is kept as its digits. */
export const isExact = (value) => able && JSON.isRawJSON(value);

const written = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/; // RFC 8259, 6
const long = /\d{16}/; // shorter ones are the same in any case

/** keeps: a number of 15 digits is the same here as it was written. */
function keeps(n, text) {
  const digits = text.replace(/[eE].*/, '').replace(/\D/g, '').replace(/^0+|0+$/g, '');
  return String(n) === text || (digits.length <= 15 && (n !== 0 || digits === ''));
}

/** exact is the number that a text says, or NaN; it throws where digits would be lost. */
export function exact(text) {
  const n = Number(text);
  if (!Number.isFinite(n)) return NaN;
  const plain = text.replace(/^\+/, '').replace(/^(-?)0+(?=\d)/, '$1').replace(/^(-?)\./, (_, sign) => `${sign}0.`).replace(/\.(?=$|e)/i, '');
  if (written.test(plain) ? keeps(n, plain) : Number.isSafeInteger(n)) return n;
  if (!able || !written.test(plain)) throw new Error(`${text} has more digits than can be sent exactly here.`);
  return JSON.rawJSON(plain);
}

/** parse reads JSON; it throws where digits would be lost. */
export function parse(text) {
  if (!long.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => {
    if (typeof value !== 'number') return value;
    if (able) return keeps(value, context.source) ? value : JSON.rawJSON(context.source);
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Error(`a number like ${value} has more digits than can be sent exactly here`);
    return value;
  });
}

/**
 * withDigits reads JSON whose numbers can be reckoned with, but for what copy
 * takes over from the same value with all digits: copy(plain, exact).
 */
export function withDigits(text, copy) {
  const plain = JSON.parse(text);
  if (able && long.test(text)) copy(plain, parse(text));
  return plain;
}

/** schemaDigits copies the values that schemas name, which forms send; limits are reckoned with. */
export function schemaDigits(plain, exact) {
  if (typeof plain !== 'object' || plain === null || isExact(plain)) return;
  for (const key of Object.keys(plain)) {
    if (['default', 'enum', 'const'].includes(key)) plain[key] = exact[key];
    else schemaDigits(plain[key], exact[key]);
  }
}

/** askDigits copies what a question shows and has people send. */
export function askDigits(plain, exact) {
  for (const key of ['arguments', 'default']) plain[key] = exact[key];
  schemaDigits(plain.schema, exact.schema);
}

/** approvalDigits copies the arguments that approvals are for. */
export function approvalDigits(plain, exact) {
  plain.approvals.forEach((approval, i) => (approval.arguments = exact.approvals[i].arguments));
}

/** digitsOf is a plain value as it was written. */
export const digitsOf = (value) => (isExact(value) ? value.rawJSON : String(value));

/** same says whether two plain values are. */
export const same = (a, b) => a === b || (isExact(a) && isExact(b) && a.rawJSON === b.rawJSON);
