// Forms made from a JSON Schema. What a form can't show well (unions, free
// objects, references, deep nesting) is written as JSON: the daemon checks the
// value in any case.

import { h, fill } from './dom.js';
import { exact, isExact, parse, same, digitsOf } from './exact.js';
import { json, printable } from './format.js';

const maxDepth = 3;
const maxFields = 100;
let made = 0;

/** kindOf says how a schema is shown. Pure. */
export function kindOf(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null) return 'json';
  if (Array.isArray(schema.enum)) return schema.enum.every(plain) && schema.enum.length > 0 ? 'choice' : 'json';
  if (schema.const !== undefined) return plain(schema.const) ? 'choice' : 'json';
  if (schema.oneOf?.length > 0 && schema.oneOf.every((s) => plain(s?.const))) return 'choice';
  const types = [schema.type].flat().filter((t) => t !== 'null');
  switch (types.length === 1 ? types[0] : '') {
    case 'string':
      return 'text';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'object':
      return depth < maxDepth && simpleObject(schema) ? 'object' : 'json';
    case 'array':
      return severalOf(schema) ? 'several' : textsOf(schema) ? 'lines' : 'json';
  }
  return 'json';
}

const plain = (v) => ['string', 'number', 'boolean'].includes(typeof v) || isExact(v);

function simpleObject(schema) {
  const n = Object.keys(schema.properties ?? {}).length;
  return n <= maxFields && !(n === 0 && schema.additionalProperties !== false) && !['$ref', 'oneOf', 'anyOf', 'allOf'].some((k) => k in schema);
}

/** severalOf: some of a few values, which may have titles. */
const severalOf = ({ items }) =>
  (Array.isArray(items?.enum) && items.enum.length > 0 && items.enum.every(plain)) ||
  [items?.anyOf, items?.oneOf].some((list) => list?.length > 0 && list.every((s) => plain(s?.const)));

const textsOf = (schema) => schema.items?.type === 'string' && !schema.items.enum;

/** choicesOf are the values of a choice, with their names. Pure. */
export function choicesOf(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled) return titled.map((s) => ({ value: s.const, name: s.title ?? digitsOf(s.const) }));
  if (schema.const !== undefined) return [{ value: schema.const, name: digitsOf(schema.const) }];
  return schema.enum.map((value, i) => ({ value, name: schema.enumNames?.[i] ?? digitsOf(value) }));
}

/**
 * formOf makes a form's fields: {node, read(), blank()}. read returns {value},
 * where undefined is none, or {error, at}: what is wrong, and the element where.
 * blank says whether nothing in them has been changed.
 */
export function formOf(schema, { name = '', required = true, secret = false, initial, depth = 0 } = {}) {
  let kind = kindOf(schema, depth);
  if (secret && (kind === 'text' || kind === 'number')) kind = 'secret';
  const field = { schema: schema ?? {}, name, required, secret, initial: initial ?? schema?.default, depth, id: `field-${++made}` };
  return makers[kind](field);
}

/** label gives a control its name, its description and its error. */
function labelled(field, control, { after = null, inline = false } = {}) {
  const { schema, name, required, id } = field;
  const title = printable(schema.title || name || 'Value');
  const about = schema.description ? h('p', { class: 'about', id: id + '-about' }, printable(schema.description)) : null;
  const error = h('p', { class: 'field-error', id: id + '-error', role: 'alert', hidden: true });
  control.id = id;
  control.setAttribute('aria-describedby', [about && about.id, error.id].filter(Boolean).join(' '));
  if (required && !inline) control.setAttribute('aria-required', 'true');
  const words = h('label', { for: id }, title, required ? null : h('span', { class: 'optional' }, ' optional'));
  return { error, node: h('div', { class: inline ? 'field inline' : 'field' }, inline ? [control, words] : [words], about, inline ? null : control, after, error) };
}

/** checked makes read of a control: parse gives its value, or throws. */
function checked(field, control, parts, parse) {
  const clear = () => {
    parts.error.hidden = true;
    control.removeAttribute('aria-invalid');
  };
  control.addEventListener('input', clear);
  const content = () => (control.type === 'checkbox' ? control.checked : control.value);
  const first = content();
  return {
    node: parts.node,
    blank: () => content() === first,
    clear,
    read() {
      clear();
      try {
        return { value: parse() };
      } catch (error) {
        parts.error.textContent = error.message;
        parts.error.hidden = false;
        control.setAttribute('aria-invalid', 'true');
        return { error: error.message, at: control };
      }
    },
  };
}

function wanted(field, text) {
  if (text === '' && field.required) throw new Error('This is needed.');
  return text;
}

const isWhole = (schema) => [schema.type].flat().includes('integer');

/** numberOf a text, with all its digits. */
function numberOf({ schema }, text) {
  const n = Number(text);
  if (!Number.isFinite(n)) throw new Error('Write a number.');
  if (isWhole(schema) && !Number.isInteger(n)) throw new Error('Write a whole number.');
  if (n < (schema.minimum ?? -Infinity)) throw new Error(`At least ${schema.minimum}.`);
  if (n > (schema.maximum ?? Infinity)) throw new Error(`At most ${schema.maximum}.`);
  return exact(text);
}

/** Texts of these names are often of several lines. */
const longNames = /^(body|code|content|prompt|script|text)$/i;

const formats = { email: 'email', uri: 'url', url: 'url', date: 'date' };

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** misformed says what is wrong with a text of a format, if anything is. */
function misformed(format, control) {
  if (format === 'date-time') return rfc3339.test(control.value) && !Number.isNaN(Date.parse(control.value)) ? '' : 'Write a date and time, such as 2026-07-28T12:30:00Z.';
  return control.validity?.valid === false ? { email: 'Write an email address.', date: 'Write a date.' }[format] ?? 'Write a whole address, with https: or another scheme before it.' : '';
}

const makers = {
  text(field) {
    const { schema } = field;
    const long = (schema.maxLength ?? 0) > 200 || /\n/.test(field.initial ?? '') || longNames.test(field.name);
    const control = long ? h('textarea', { rows: 4, spellcheck: 'false' }) : h('input', { type: formats[schema.format] ?? 'text', autocomplete: 'off', spellcheck: 'false' });
    control.value = typeof field.initial === 'string' ? field.initial : '';
    return checked(field, control, labelled(field, control), () => {
      const wrong = control.value === '' && !control.validity?.badInput ? '' : misformed(schema.format, control);
      if (wrong) throw new Error(wrong);
      const text = wanted(field, control.value);
      if (text === '') return undefined;
      if ([...text].length < (schema.minLength ?? 0)) throw new Error(`At least ${schema.minLength} characters.`);
      if ([...text].length > (schema.maxLength ?? Infinity)) throw new Error(`At most ${schema.maxLength} characters.`);
      return text;
    });
  },

  secret(field) {
    const control = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' });
    return checked(field, control, labelled(field, control), () => {
      const text = wanted(field, control.value);
      if (text === '') return undefined;
      return kindOf(field.schema) === 'number' ? numberOf(field, text.trim()) : text;
    });
  },

  number(field) {
    const whole = isWhole(field.schema);
    const control = h('input', { type: 'text', inputmode: whole ? 'numeric' : 'decimal', autocomplete: 'off' });
    control.value = typeof field.initial === 'number' || isExact(field.initial) ? json(field.initial) : '';
    return checked(field, control, labelled(field, control), () => {
      const text = wanted(field, control.value.trim());
      return text === '' ? undefined : numberOf(field, text);
    });
  },

  boolean(field) {
    const control = h('input', { type: 'checkbox' });
    control.checked = field.initial === true;
    // Unticked is false where a value is wanted, and nothing where it need not be.
    return checked(field, control, labelled({ ...field, required: true }, control, { inline: true }), () =>
      control.checked || field.required || field.initial !== undefined ? control.checked : undefined,
    );
  },

  choice(field) {
    const choices = choicesOf(field.schema);
    const control = h('select', {}, field.required && field.initial === undefined ? h('option', { value: '' }, 'Choose…') : null,
      field.required ? null : h('option', { value: '' }, 'none'), choices.map((c, i) => h('option', { value: i }, printable(c.name))));
    const at = choices.findIndex((c) => same(c.value, field.initial));
    if (at >= 0) control.value = String(at);
    return checked(field, control, labelled(field, control), () => {
      const text = wanted(field, control.value);
      return text === '' ? undefined : choices[Number(text)].value;
    });
  },

  several(field) {
    const { schema, id } = field;
    const first = Array.isArray(field.initial) ? field.initial : [];
    const boxes = choicesOf(schema.items).map((choice, i) => {
      const box = h('input', { type: 'checkbox', id: `${id}-${i}` });
      box.checked = first.some((value) => same(value, choice.value));
      return { ...choice, box, was: box.checked };
    });
    const error = h('p', { class: 'field-error', id: id + '-error', role: 'alert', hidden: true });
    const about = schema.description ? h('p', { class: 'about' }, printable(schema.description)) : null;
    const node = h('fieldset', { class: 'several', 'aria-describedby': error.id },
      h('legend', {}, printable(schema.title || field.name || 'Value'), field.required ? null : h('span', { class: 'optional' }, ' optional')), about,
      boxes.map(({ box, name }) => h('div', { class: 'field inline' }, box, h('label', { for: box.id }, printable(name)))), error);
    const clear = () => {
      error.hidden = true;
    };
    node.addEventListener('input', clear);
    return {
      node,
      clear,
      blank: () => boxes.every(({ box, was }) => box.checked === was),
      read() {
        clear();
        const list = boxes.filter(({ box }) => box.checked).map(({ value }) => value);
        if (list.length === 0 && !field.required && field.initial === undefined) return { value: undefined };
        const least = schema.minItems ?? 0;
        const most = schema.maxItems ?? Infinity;
        if (list.length >= least && list.length <= most) return { value: list };
        error.textContent = list.length < least ? `Choose at least ${least}.` : `Choose at most ${most}.`;
        error.hidden = false;
        return { error: error.textContent, at: boxes[0].box };
      },
    };
  },

  lines(field) {
    const control = h('textarea', { rows: 3, spellcheck: 'false', placeholder: 'one a line' });
    control.value = Array.isArray(field.initial) ? field.initial.join('\n') : '';
    return checked(field, control, labelled(field, control), () => {
      const list = control.value.split('\n').map((l) => l.trim()).filter((l) => l !== '');
      if (list.length === 0 && !field.required) return undefined;
      if (list.length < (field.schema.minItems ?? 0)) throw new Error(`At least ${field.schema.minItems}, one a line.`);
      return list;
    });
  },

  json(field) {
    const control = h('textarea', { rows: 5, class: 'mono', spellcheck: 'false' });
    control.value = json(field.initial);
    const kind = [field.schema.type].flat().filter(Boolean).join(' or ');
    const hint = h('p', { class: 'about' }, kind ? `JSON: ${kind}` : 'JSON');
    return checked(field, control, labelled(field, control, { after: hint }), () => {
      const text = wanted(field, control.value.trim());
      if (text === '') return undefined;
      try {
        return parse(text);
      } catch (error) {
        throw new Error(`This cannot be sent as JSON: ${error.message}`);
      }
    });
  },

  object(field) {
    const { schema, name, depth } = field;
    const needed = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties ?? {}).map(([key, of]) => [
      key, formOf(of, { name: key, required: needed.has(key), initial: field.initial?.[key], secret: field.secret, depth: depth + 1 }),
    ]);
    const nodes = fields.map(([, f]) => f.node);
    const words = printable(schema.title || name);
    const node = depth === 0 ? h('div', { class: 'fields' }, nodes) : h('fieldset', {}, h('legend', {}, words, field.required ? null : h('span', { class: 'optional' }, ' optional')), nodes);
    if (depth === 0 && fields.length === 0) fill(node, h('p', { class: 'about' }, 'It takes no arguments.'));
    const all = fields.map(([, f]) => f);
    const blank = () => all.every((f) => f.blank());
    const clear = () => all.forEach((f) => f.clear());
    const read = () => {
      // What need not be there, and nobody has touched, is not there: whatever it would need.
      if (field.required || field.initial !== undefined || !blank()) return readObject(fields);
      clear();
      return { value: undefined };
    };
    return { node, blank, clear, read };
  },
};

function readObject(fields) {
  const pairs = [];
  let bad;
  for (const [key, field] of fields) {
    const got = field.read();
    if (got.error) bad ??= got;
    else if (got.value !== undefined) pairs.push([key, got.value]);
  }
  const value = Object.fromEntries(pairs);
  return bad ? { ...bad, rest: value } : { value };
}
