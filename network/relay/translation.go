package relay

import (
	"context"
	"net/netip"
	"time"

	"github.com/toolhost/toolhost/network"
)

const (
	// translationFor is how long the prefixes of a NAT64 are taken to stay, and
	// translationRetry how long it is until the resolver is asked again which has not
	// answered.
	translationFor   = 10 * time.Minute
	translationRetry = 5 * time.Second
)

// prefixes are those that a NAT64 of this network makes of IPv4 addresses, which its
// resolver is asked when that matters. may says that it has not answered: any IPv6 address
// may be a translated one.
func (w *hostNetwork) prefixes(ctx context.Context) (list []netip.Prefix, may bool) {
	l := w.translate()
	select {
	case <-l.done:
		return network.TranslatedPrefixes(l.addrs), !l.answered()
	case <-ctx.Done():
		return nil, true
	}
}

// translate begins the lookup that tells, or joins the last one.
func (w *hostNetwork) translate() *lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.translation
	if l == nil || !l.holds(translationRetry) && !(l.answered() && l.holds(translationFor)) {
		w.translation = w.lookUp("ip6", network.TranslationName, network.DefaultDial)
	}
	return w.translation
}
