// The few things that the views need of the document. Text goes in as text,
// never as markup: there is no way here to parse any.

/**
 * h makes an element. Properties: class, data ({name: value}), on* (listeners);
 * the rest are attributes, which false, null and undefined leave out.
 */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(node, name, value);
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

function set(node, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
  else if (name === 'class') node.className = value;
  else if (name === 'data') Object.assign(node.dataset, value);
  else node.setAttribute(name, value === true ? '' : value);
}

/** setText writes only what has changed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** setClass has an element have a class, or not. */
export const setClass = (node, name, on) => node.classList.toggle(name, Boolean(on));

/** setData writes only what has changed. */
export function setData(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

/** show has an element be there for everybody, or for nobody. */
export function show(node, on) {
  if (node.hidden === Boolean(on)) node.hidden = !on;
}

/** fill replaces what is in an element. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/**
 * Rows keeps a list of elements in step with a list of items, and moves none
 * that need not move: what has the focus keeps it.
 */
export class Rows {
  #parent;
  #make;
  #rows = new Map();

  /** make(item) makes {node, update(item), drop?()}. */
  constructor(parent, make) {
    this.#parent = parent;
    this.#make = make;
  }

  /** sync shows the items; changed, a set of keys, spares the others an update. */
  sync(items, keyOf, changed = null) {
    const keys = new Set(items.map(keyOf));
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      row.node.remove();
      row.drop?.();
      this.#rows.delete(key);
    }
    let place = this.#parent.firstChild;
    for (const item of items) {
      const key = keyOf(item);
      const fresh = !this.#rows.has(key);
      const row = this.#row(key, item);
      if (fresh || !changed || changed.has(key)) row.update(item);
      if (row.node === place) place = place.nextSibling;
      else this.#parent.insertBefore(row.node, place);
    }
  }

  #row(key, item) {
    let row = this.#rows.get(key);
    if (!row) {
      row = this.#make(item);
      this.#rows.set(key, row);
    }
    return row;
  }

  get(key) {
    return this.#rows.get(key);
  }

  each(visit) {
    for (const row of this.#rows.values()) visit(row);
  }
}

/** Frames calls draw before the next picture, once, however often it is asked. */
export class Frames {
  #asked = false;
  #draw;

  constructor(draw) {
    this.#draw = draw;
  }

  ask() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.#draw();
    });
  }
}

/**
 * roving makes a list of rows one stop of the tab key; arrows, Home and End
 * move in it.
 */
export function roving(list, selector) {
  const rows = () => [...list.querySelectorAll(selector)].filter((n) => n.offsetParent !== null);
  const only = (row) => {
    for (const other of list.querySelectorAll(selector)) other.tabIndex = other === row ? 0 : -1;
  };
  list.addEventListener('focusin', (e) => {
    const row = e.target.closest(selector);
    if (row) only(row);
  });
  list.addEventListener('keydown', (e) => {
    if (e.target.closest(selector) !== e.target || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = rows();
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[e.key];
    if (step === undefined) return;
    e.preventDefault();
    const at = Math.min(all.length - 1, Math.max(0, all.indexOf(e.target) + step));
    all[at]?.focus();
  });
  return {
    /** one has one row be the stop, whatever the rows are now. */
    one() {
      const all = rows();
      if (all.length > 0 && !all.some((n) => n.tabIndex === 0)) all[0].tabIndex = 0;
    },
  };
}

/** onlyChanged calls f where the value is another than the last time. */
export function onlyChanged(f) {
  let last;
  return (value) => {
    if (value === last) return;
    last = value;
    f(value);
  };
}
