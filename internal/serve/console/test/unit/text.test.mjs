import assert from 'node:assert/strict';
import { test } from 'node:test';
import { able, approvalDigits, askDigits, exact, parse, withDigits } from '../../static/js/exact.js';
import { fit } from '../../static/js/draw.js';
import { brief, head, line, pace, printable, readable, size, span, timer, word } from '../../static/js/format.js';
import { append, appendContent, joined, newOutput, shrink, tail, textOf } from '../../static/js/output.js';
import { EventParser } from '../../static/js/sse.js';
import { href, parse as parseAddress } from '../../static/js/route.js';
import { reasonOf } from '../../static/js/status.js';

test('times and sizes', () => {
  assert.deepEqual([0, 999, 9999, 60_000, 3_725_000, -5].map(timer), ['0s', '0s', '9s', '1m 00s', '1h 02m', '0s']);
  assert.deepEqual([0, 0.21, 1.84, 2, 85, 1234, 12_340, 30_000, 65_000, null].map(span), ['0 ms', '210 µs', '1.8 ms', '2 ms', '85 ms', '1.23 s', '12.3 s', '30 s', '1m 05s', '–']);
  assert.deepEqual([0, 1, 812, 1536, 200 * 1024 * 1024].map(size), ['0 bytes', '1 byte', '812 bytes', '1.5 KiB', '200 MiB']);
});

test('the pace: green under 10 s, yellow to 30 s, red over', () => {
  assert.deepEqual([0, 9999, 10_000, 30_000, 30_001].map(pace), ['ok', 'ok', 'slow', 'slow', 'late']);
});

test('no control character gets through', () => {
  assert.equal(printable('a\u001b[31mb\u0000\tc\r\nd\re\u202ef\u007f\u009b'), 'a␛[31mb␀\tc\nd␍e⟨202E⟩f␡⟨009B⟩');
  assert.equal(printable('rm\u200b \u{e0041}\u3164\u00ad❤\ufe0f\u200d🔥'), 'rm⟨200B⟩ ⟨E0041⟩⟨3164⟩⟨00AD⟩❤⟨FE0F⟩⟨200D⟩🔥');
  assert.equal(readable('a\u200bb\u202e\u{e0041} soft\u00ad❤\ufe0f\u200d🔥\u2800'), 'a⟨200B⟩b⟨202E⟩⟨E0041⟩ soft\u00ad❤\ufe0f\u200d🔥\u2800');
  assert.equal(line('one\ntwo\u001b\n\n'), 'two␛');
  assert.equal(line('x'.repeat(300), 10), 'xxxxxxxxxx…');
  assert.equal(brief('0123456789abcdef', 8), '…9abcdef');
  assert.deepEqual([head('0123456789abcdef', 8), head('01234567', 8), head('😀😀😀', 2)], ['0123456…', '01234567', '😀…']);
  assert.equal(word('a\nb\tc\u001b'), 'a␊b␉c␛');
});

test('output is bounded, and its places go on', () => {
  const o = newOutput();
  for (let i = 0; i < 100; i++) append(o, 'content', 'x'.repeat(99) + '\n', 3000);
  assert.equal(o.end, 10_000);
  assert.ok(o.end - o.start <= 3000 + 4096, `${o.end - o.start}`);
  append(o, 'stderr', 'last\n', 3000);
  assert.deepEqual([o.chunks.at(-1).stream, o.chunks.at(-1).at, tail(o).trim()], ['stderr', 10_000, 'last']);
  shrink(o, 10);
  assert.equal(o.chunks.length, 1);
});

test('no piece of output ends in the middle of a character', () => {
  const o = newOutput();
  append(o, 'content', 'x' + '😀'.repeat(5000));
  for (const { text } of o.chunks) assert.ok(text.isWellFormed());
});

test('content of every type is text', () => {
  const types = [{ type: 'text', text: 'a' }, { type: 'json', json: { a: 1 } }, { type: 'blob', data: 'AAAA', mimeType: 'image/png' }, { type: 'resource_link', uri: 'x:y', name: 'n' },
    { type: 'resource', uri: 'file:///x', text: 'hello' }, { type: 'resource', uri: 'x:\ny', data: 'AAAA' }, undefined];
  assert.deepEqual(types.map(textOf), ['a', '{\n  "a": 1\n}\n', '[image/png, 3 bytes]\n', '[n: x:y]\n', '[file:///x]\nhello', '[x:␊y, 3 bytes]\n', '']);
});

test('what does not go on where the text before it ended has a line of its own', () => {
  const text = (text, block) => ({ type: 'text', text, block });
  const list = [text('a', true), text('b', true), text('c'), { type: 'resource', uri: 'x:y', text: 'd' }, text('e\n', true), text('f', true)];
  const want = 'a\nbc\n[x:y]\nd\ne\nf';
  assert.equal(joined(list), want);
  const o = newOutput();
  for (const content of list) appendContent(o, 'content', content);
  assert.equal(o.chunks.map((c) => c.text).join(''), want);
});

test('a blob is of the bytes that it decodes to, and its type is one word', () => {
  const blob = (bytes, mimeType) => textOf({ type: 'blob', data: Buffer.alloc(bytes).toString('base64'), mimeType });
  assert.deepEqual([0, 1, 2, 3, 11].map((n) => blob(n, 'a/b')), ['[a/b, 0 bytes]\n', '[a/b, 1 byte]\n', '[a/b, 2 bytes]\n', '[a/b, 3 bytes]\n', '[a/b, 11 bytes]\n']);
  assert.deepEqual(['', ' ', undefined, 'a\nb'].map((m) => blob(1, m)), [...Array(3).fill('[blob of no MIME type, 1 byte]\n'), '[a␊b, 1 byte]\n']);
  assert.equal(textOf({ type: 'resource_link', name: 'a\nb', uri: 'x:\ny' }), '[a␊b: x:␊y]\n');
});

test('what a reason means depends on the outcome', () => {
  assert.deepEqual(['tool_error', 'cancelled', 'unkillable'].map((s) => reasonOf('error', s)), ['', 'the host failed', 'the host failed']);
  assert.deepEqual(['denied', 'cancelled', 'unkillable', 'invalid_args'].map((s) => reasonOf('timeout', s)),
    ['nobody answered in time', 'the turn’s deadline passed', 'the turn’s deadline passed', 'the timeout asked for is not valid']);
  assert.deepEqual([reasonOf('user', 'cancelled'), reasonOf('memory', 'oom'), reasonOf('', 'ok')], ['by a human', 'memory', '']);
});

test('numbers keep their digits, or are refused', () => {
  const same = { 5: 5, '-1.50': -1.5, '+7': 7, '1e3': 1000, 9007199254740991: 9007199254740991, 0.1: 0.1, '0x10': 16, 1e21: 1e21, '.5': 0.5, '-.5': -0.5, '5.': 5, '5.e1': 50, '-007': -7 };
  for (const [text, n] of Object.entries(same)) assert.equal(exact(text), n, text);
  assert.ok(Number.isNaN(exact('x')));
  assert.throws(() => exact('0xffffffffffffffff'), /more digits/);
  const many = ['9007199254740993', '18446744073709551615', '-9007199254740993', '0.12345678901234567891', '1e-400'];
  for (const text of many) {
    if (able) assert.equal(JSON.stringify([exact(text), parse(`{"a":${text}}`)]), `[${text},{"a":${text}}]`);
    else assert.throws(() => exact(text), /more digits/, text);
  }
  assert.deepEqual(parse('{"a":[1,"9007199254740993",12345678901234.5]}'), { a: [1, '9007199254740993', 12345678901234.5] });
  if (!able) assert.throws(() => parse('{"a":[9007199254740993]}'), /more digits/);
});

test('a question keeps the digits of all that is sent for it', () => {
  // As both readings of one answer are: where this browser cannot keep digits, they are played.
  const ask = (n) => ({ arguments: { n }, default: { id: n }, schema: { properties: { id: { default: n, maximum: 5 }, one: { enum: [n] }, of: { oneOf: [{ const: n }] } } } });
  const plain = ask(1234567890123456800);
  askDigits(plain, ask('1234567890123456789'));
  assert.deepEqual(plain, ask('1234567890123456789'));
  if (!able) return;
  const text = JSON.stringify(ask(0)).replaceAll(':0', ':1234567890123456789').replace('[0]', '[1234567890123456789]');
  assert.equal(JSON.stringify(withDigits(text, askDigits)), text);
});

test('an approval keeps the digits of its arguments, if it is for some', () => {
  const list = (n) => ({ approvals: [{ approvalId: 'a', uses: 2, arguments: { id: n } }, { approvalId: 'b', uses: 0 }] });
  const plain = list(1234567890123456800);
  approvalDigits(plain, list('1234567890123456789'));
  assert.deepEqual(JSON.parse(JSON.stringify(plain)), list('1234567890123456789'));
});

test('choices keep their digits', { skip: !able }, async () => {
  const { choicesOf, kindOf } = await import('../../static/js/form.js');
  const schema = parse('{"enum":[1234567890123456789]}');
  assert.equal(kindOf(schema), 'choice');
  assert.deepEqual(choicesOf(schema).map((c) => [c.name, JSON.stringify(c.value)]), [['1234567890123456789', '1234567890123456789']]);
});

test('a name is cut at its end to what there is room for', () => {
  const measure = (text) => [...text].reduce((sum, c) => sum + (c === 'W' ? 12 : 6), 0);
  assert.deepEqual([fit('short', 74, measure), fit('W'.repeat(64), 74, measure), fit('n'.repeat(64), 74, measure)], ['short', 'W'.repeat(5) + '…', 'n'.repeat(11) + '…']);
});

test('server-sent events, however they are cut', () => {
  const stream = '\ufeff: hello\n\nid: 1\nevent: tool_output\ndata: {"a":\ndata: 1}\n\nid:2\r\nevent:x\r\ndata:y\r\n\r\ndata: z\r\rid: 3\n\n: beat\n\n';
  const want = [{ id: '1', kind: 'tool_output', data: '{"a":\n1}' }, { id: '2', kind: 'x', data: 'y' }, { id: '', kind: 'message', data: 'z' }];
  for (let step = 1; step <= stream.length; step++) {
    const parser = new EventParser();
    const got = [];
    for (let i = 0; i < stream.length; i += step) got.push(...parser.push(stream.slice(i, i + step)));
    assert.deepEqual(got, want, `in steps of ${step}`);
  }
});

test('addresses go there and back', () => {
  for (const ids of [[], ['a/b?c#d'], ['t', 'ä %2F'], ['a b']]) {
    const route = parseAddress(href('history', ids, { tool: 'a&b', status: '' }));
    assert.deepEqual(route, { view: 'history', ids, query: { tool: 'a&b' } });
  }
  assert.deepEqual([parseAddress('').view, parseAddress('#/x/%zz').ids], ['live', ['%zz']]);
});
