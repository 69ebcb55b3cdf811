// Shows what a call puts out as it comes. The end is followed, unless somebody
// has scrolled away from it.

import { h, setText, show } from './dom.js';
import { readable, size } from './format.js';

const nearEndPx = 24;

export class OutputView {
  #pre = h('pre', { class: 'output', tabindex: 0, role: 'region', 'aria-label': 'Output' });
  #cut = h('p', { class: 'output-cut', hidden: true });
  #more = h('button', { type: 'button', class: 'to-end', hidden: true }, 'Go to the end');
  #shown = 0;
  #following = true;

  constructor() {
    this.node = h('div', { class: 'output-box' }, this.#cut, this.#pre, this.#more);
    this.#pre.addEventListener('scroll', () => {
      this.#following = this.#pre.scrollHeight - this.#pre.scrollTop - this.#pre.clientHeight < nearEndPx;
      if (this.#following) show(this.#more, false);
    }, { passive: true });
    this.#more.addEventListener('click', () => this.#toEnd());
  }

  update(output) {
    const fresh = output.end > this.#shown;
    for (const chunk of output.chunks) this.#add(chunk);
    this.#shown = output.end;
    while (this.#pre.firstChild && Number(this.#pre.firstChild.dataset.at) < output.start) this.#pre.firstChild.remove();
    show(this.#cut, output.start > 0 || output.missed > 0);
    setText(this.#cut, cutText(output));
    if (!fresh) return;
    if (this.#following) this.#toEnd();
    else show(this.#more, true);
  }

  #add(chunk) {
    const end = chunk.at + chunk.text.length;
    if (end <= this.#shown) return;
    const text = readable(chunk.text.slice(Math.max(0, this.#shown - chunk.at)));
    const last = this.#pre.lastElementChild;
    if (last && Number(last.dataset.at) === chunk.at) {
      last.append(text);
      return;
    }
    const changed = (last?.dataset.stream ?? 'content') !== chunk.stream;
    this.#pre.append(h('span', { data: { at: chunk.at, stream: chunk.stream } },
      changed ? h('span', { class: 'stream-name' }, chunk.stream) : null, text));
  }

  #toEnd() {
    this.#pre.scrollTop = this.#pre.scrollHeight;
    this.#following = true;
    show(this.#more, false);
  }
}

function cutText(output) {
  const words = [];
  if (output.start > 0) words.push(`the first ${size(output.start)} are no longer shown here`);
  if (output.missed > 0) words.push(`${output.missed} pieces came too fast to be shown`);
  return words.length > 0 ? `${words.join('; ')}; the result has what was kept` : '';
}
