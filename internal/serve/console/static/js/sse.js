// Server-sent events (WHATWG HTML, 9.2.6), from pieces of a stream. Pure.

export class EventParser {
  #rest = ['']; // the pieces of a line that has not ended
  #begun = false;
  #event = empty();

  /** push takes the next piece and returns the events that it completes. */
  push(piece) {
    const done = [];
    const halved = this.#rest.at(-1).endsWith('\r'); // perhaps a line's end
    this.#rest.push(piece);
    // A long line is not to be searched anew with each of its pieces.
    if (!halved && !/[\r\n]/.test(piece)) return done;
    let text = this.#rest.join('');
    if (!this.#begun) {
      this.#begun = true;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    // A carriage return at the very end may be half of a line's end.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.#rest = [lines.pop()];
    for (const line of lines) this.#line(line, done);
    return done;
  }

  #line(line, done) {
    if (line === '') {
      if (this.#event.data.length > 0) {
        done.push({ ...this.#event, data: this.#event.data.join('\n') });
      }
      this.#event = empty();
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#event.data.push(value);
    if (name === 'event') this.#event.kind = value;
    if (name === 'id') this.#event.id = value;
  }
}

const empty = () => ({ id: '', kind: 'message', data: [] });
