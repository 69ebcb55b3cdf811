// Addresses of views: #/history/TURN/CALL?tool=search. Pure.

/** parse takes the part of an address behind and with its #. */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#?\/?/, '').split('?');
  const parts = path.split('/').filter((p) => p !== '').map(decode);
  return { view: parts[0] ?? 'live', ids: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** href is the address of a view. */
export function href(view, ids = [], query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value);
  const tail = pairs.length > 0 ? '?' + new URLSearchParams(pairs) : '';
  return '#/' + [view, ...ids].map(encodeURIComponent).join('/') + tail;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
