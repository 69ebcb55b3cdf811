// The browser's session: a token for this tab, that is sent as a header and never as
// part of an address. Its storage is that of one origin: no other port has it. A tab
// that has none asks the others of the same origin.

const name = 'toolhost.session';
const askMs = 250;

let held = read();
const others = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('toolhost.session');

function read() {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** token is what requests bear, or null. */
export const token = () => held;

/** keep takes a new token, or none. */
export function keep(token) {
  held = token;
  try {
    if (token === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, token);
  } catch {
    // It is for this page only, then.
  }
}

others?.addEventListener('message', ({ data }) => {
  if (data?.kind === 'ask' && held !== null) others.postMessage({ kind: 'here', token: held });
  if (data?.kind === 'out' && data.token === held) keep(null);
});

/** out tells the other tabs that the session is over. */
export function out() {
  others?.postMessage({ kind: 'out', token: held });
  keep(null);
}

/** ask gets the token of another tab, if one has it. */
function ask() {
  if (others === null) return Promise.resolve(null);
  return new Promise((resolve) => {
    const end = (value) => {
      clearTimeout(timer);
      others.removeEventListener('message', heard);
      resolve(value);
    };
    const heard = ({ data }) => data?.kind === 'here' && end(data.token);
    const timer = setTimeout(() => end(null), askMs);
    others.addEventListener('message', heard);
    others.postMessage({ kind: 'ask' });
  });
}

/** hasLink says whether an address signs in. */
export const hasLink = (location) => new URLSearchParams(location.hash.slice(1)).has('link');

/** linkIn takes the secret of a login link out of the address, or gives null. */
export function linkIn(location, history) {
  const link = new URLSearchParams(location.hash.slice(1)).get('link');
  if (link !== null) history.replaceState(null, '', location.pathname);
  return link;
}

/**
 * begin has the tab signed in, by the link in its address or by another tab. It gives
 * why a link was refused, or null.
 */
export async function begin(login) {
  const link = linkIn(location, history);
  if (link !== null) {
    try {
      keep((await login(link)).token);
    } catch (error) {
      return error;
    }
  }
  if (held === null) held = await ask();
  if (held !== null) keep(held);
  return null;
}
