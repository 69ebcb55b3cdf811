package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/toolhost/toolhost/network"
)

// names are a session's: which synthetic address stands for which name, and what
// a name really has.
type names struct {
	spec        Session
	hostNetwork *hostNetwork
	exact       map[string]netip.Addr // never changed

	mu     sync.Mutex
	byAddr map[netip.Addr]string
	found  map[string]netip.Addr
	known  map[string]*lookup
}

// lookup is one of a name's, which may be under way. The rest is written before done is
// closed.
type lookup struct {
	done  chan struct{}
	addrs []netip.Addr
	err   error
	at    time.Time // of its end
}

// lookUp begins one of an absolute name, for the host's search list is not a call's. kind
// is that of net.Resolver's LookupNetIP.
func (w *hostNetwork) lookUp(kind, name string, within time.Duration) *lookup {
	return begin(func(l *lookup) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		l.addrs, l.err = w.resolver.LookupNetIP(ctx, kind, name+".")
	})
}

func begin(look func(*lookup)) *lookup {
	l := &lookup{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		look(l)
		l.at = time.Now()
	}()
	return l
}

// lookUpAll begins one of both families, each by itself: a server that fails for one, or says
// nothing, does not take away the other's addresses. IPv6 comes first (RFC 8305, section 4).
func (w *hostNetwork) lookUpAll(name string, within time.Duration) *lookup {
	return begin(func(l *lookup) {
		six, four := w.lookUp("ip6", name, within), w.lookUp("ip4", name, within)
		awaitBoth(six, four)
		l.join(six)
		l.join(four)
		if _, mapped := errors.AsType[*net.AddrError](l.err); mapped { // IPv4 in IPv6, which is of neither family
			both := w.lookUp("ip", name, within)
			<-both.done
			l.err = both.err
			l.join(both)
		}
	})
}

// otherFamily is how long the addresses of one family wait for those of the other.
const otherFamily = time.Second

func awaitBoth(a, b *lookup) {
	select {
	case <-a.done:
	case <-b.done:
		a, b = b, a
	}
	if len(a.addrs) == 0 {
		<-b.done
		return
	}
	late := time.NewTimer(otherFamily)
	defer late.Stop()
	select {
	case <-b.done:
	case <-late.C:
	}
}

// join adds what a part of the lookup has found. Without addresses, the error of a part that
// failed replaces one of a name that does not exist.
func (l *lookup) join(part *lookup) {
	select {
	case <-part.done:
	default:
		return
	}
	l.addrs = append(l.addrs, part.addrs...)
	switch {
	case len(l.addrs) > 0:
		l.err = nil
	case l.err == nil || l.missing():
		l.err = part.err
	}
}

// holds says whether it is under way, or has ended less than so long ago.
func (l *lookup) holds(keep time.Duration) bool {
	select {
	case <-l.done:
		return time.Since(l.at) < keep
	default:
		return true
	}
}

// keepLookup is how long a lookup counts: the query that comes before a connection
// has made it.
const keepLookup = 5 * time.Second

// maxKnown bounds the lookups that are remembered.
const maxKnown = network.MaxGrants + network.MaxFound

func newNames(spec Session, w *hostNetwork) *names {
	n := &names{
		spec: spec, hostNetwork: w, exact: network.Exact(spec.Grants), byAddr: map[netip.Addr]string{},
		found: map[string]netip.Addr{}, known: map[string]*lookup{},
	}
	for name, addr := range n.exact {
		n.byAddr[addr] = name
	}
	return n
}

// of is the name that an address stands for; empty for none.
func (n *names) of(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[addr]
}

// give is the address that stands for a name below a wildcard, or one that is
// asked about; full where there are too many such names.
func (n *names) give(name string) (addr netip.Addr, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr, ok := n.found[name]; ok {
		return addr, false
	}
	if len(n.found) >= network.MaxFound {
		return netip.Addr{}, true
	}
	addr = network.FoundAddr(len(n.found))
	n.found[name], n.byAddr[addr] = addr, name
	return addr, false
}

// resolve begins a lookup, or joins one.
func (n *names) resolve(name string) *lookup {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.known[name]; l != nil && l.holds(keepLookup) {
		return l
	}
	if len(n.known) >= maxKnown {
		n.known = map[string]*lookup{}
	}
	l := n.hostNetwork.lookUpAll(name, n.spec.Limits.Dial)
	n.known[name] = l
	return l
}

// answered says whether the resolver has said what the name has, be it nothing. It is read
// after done.
func (l *lookup) answered() bool { return l.err == nil || l.missing() }

// missing says whether the name does not exist. It is read after done.
func (l *lookup) missing() bool {
	var failed *net.DNSError
	return errors.As(l.err, &failed) && failed.IsNotFound
}

// addresses waits for a name's.
func (n *names) addresses(ctx context.Context, name string, port uint16) ([]netip.AddrPort, error) {
	l := n.resolve(name)
	select {
	case <-l.done:
	case <-ctx.Done():
		why := context.Cause(ctx)
		return nil, &net.DNSError{UnwrapErr: why, Err: why.Error(), Name: name, IsTimeout: errors.Is(why, context.DeadlineExceeded)}
	}
	if l.err != nil {
		return nil, l.err
	}
	var list []netip.AddrPort
	for _, addr := range l.addrs {
		list = append(list, netip.AddrPortFrom(addr.Unmap(), port))
	}
	return list, nil
}
