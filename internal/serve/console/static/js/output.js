// What a call has put out, bounded: the beginning goes when there is too much.
// Places are counted from the first character on, so that a view knows what it
// has shown already. Pure.

import { json, size, word } from './format.js';

export const keepChars = 64 * 1024;
const chunkChars = 4 * 1024;

export function newOutput() {
  return { chunks: [], start: 0, end: 0, missed: 0 };
}

/** append adds text of a stream (content, stdout, stderr or log). */
export function append(output, stream, text, keep = keepChars) {
  for (let from = 0; from < text.length; ) {
    const to = whole(text, from + chunkChars);
    piece(output, stream, text.slice(from, to));
    from = to;
  }
  while (output.end - output.start > keep && output.chunks.length > 1) {
    output.start += output.chunks.shift().text.length;
  }
}

/** whole is at, or one less where that is in the middle of a character. */
function whole(text, at) {
  const code = text.charCodeAt(at - 1);
  return at < text.length && code >= 0xd800 && code < 0xdc00 ? at - 1 : at;
}

function piece(output, stream, text) {
  const last = output.chunks.at(-1);
  output.end += text.length;
  if (last && last.stream === stream && last.text.length + text.length <= chunkChars) {
    last.text += text;
    return;
  }
  output.chunks.push({ stream, text, at: output.end - text.length });
}

/** shrink keeps only the end, of a call that is over. */
export function shrink(output, keep) {
  while (output.chunks.length > 1 && output.end - output.start > keep) {
    output.start += output.chunks.shift().text.length;
  }
}

/** textOf is a piece of content as text. */
export function textOf(content) {
  switch (content?.type) {
    case 'text':
      return content.text ?? '';
    case 'json':
      return json(content.json) + '\n';
    case 'blob':
      return `[${word(content.mimeType?.trim() ? content.mimeType : 'blob of no MIME type')}, ${size(decodedBytes(content.data ?? ''))}]\n`;
    case 'resource_link':
      return `[${word(content.name || 'link')}: ${word(content.uri ?? '')}]\n`;
    case 'resource':
      return content.data ? `[${word(content.uri ?? '')}, ${size(decodedBytes(content.data))}]\n` : `[${word(content.uri ?? '')}]\n${content.text ?? ''}`;
  }
  return '';
}

/** lineBreak is what stands before a piece that does not go on where the text before it ended. */
function lineBreak(before, content) {
  const apart = content && (content.block || content.type !== 'text');
  return apart && before !== '' && !before.endsWith('\n') ? '\n' : '';
}

/** joined is content of several pieces as one text. */
export const joined = (list) => list.reduce((text, content) => text + lineBreak(text, content) + textOf(content), '');

/** appendContent adds a piece of content. */
export function appendContent(output, stream, content) {
  const last = output.chunks.at(-1);
  append(output, stream, lineBreak(last?.stream === stream ? last.text : '', content) + textOf(content));
}

/** decodedBytes are those of a text in base64, less its padding. */
const decodedBytes = (base64) => Math.floor((base64.replace(/=+$/, '').length * 3) / 4);

/** tail is the text at the end, of one stream, for one line of it. */
export function tail(output, most = 400) {
  let text = '';
  let stream;
  for (let i = output.chunks.length - 1; i >= 0 && text.length < most; i--) {
    const chunk = output.chunks[i];
    if (text.trim() !== '' && chunk.stream !== stream) break; // two streams make no line
    ({ stream } = chunk);
    text = chunk.text + text;
    if (text.trimEnd().includes('\n')) break;
  }
  return text.slice(-most);
}
