// Counts the windows of this browser that show the console and are looked at: they
// share its connections to the daemon. Each holds a lock, which the browser lets go
// of when a window ends in whatever way.

const name = 'toolhost.window';

export class Windows {
  #locks;
  #leave = null; // takes this window out of the count

  /** locks are the browser's, which old ones lack: then each window counts itself alone. */
  constructor(locks = globalThis.navigator?.locks) {
    this.#locks = locks;
  }

  /** count counts this window, too, from now on. */
  async count() {
    try {
      this.#enter();
      const { held } = await this.#locks.query();
      return Math.max(1, held.filter((lock) => lock.name === name).length);
    } catch {
      return 1; // there are no locks, or none for us
    }
  }

  #enter() {
    if (this.#leave !== null) return;
    const left = new Promise((resolve) => (this.#leave = resolve));
    this.#locks?.request(name, { mode: 'shared' }, () => left).catch(() => {});
  }

  /** leave: this window is not looked at. */
  leave() {
    this.#leave?.();
    this.#leave = null;
  }
}
