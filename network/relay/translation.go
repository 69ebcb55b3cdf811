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

const (
	// translationFor is how long the prefixes of a NAT64 are taken to stay, and
	// translationRetry how long it is until the resolver is asked again which has not
	// answered.
	translationFor   = 10 * time.Minute
	translationRetry = 5 * time.Second
)

// translation is which prefixes a NAT64 of this network makes of IPv4 addresses, which
// its resolver is asked when that matters first.
type translation struct {
	resolver *net.Resolver

	mu    sync.Mutex
	list  []netip.Prefix
	known bool
	until time.Time     // list and known hold
	asked chan struct{} // closed at the end of the query under way; nil without one
}

// prefixes waits for the resolver's answer. may says that it has not come: any IPv6
// address may be a translated one.
func (t *translation) prefixes(ctx context.Context) (list []netip.Prefix, may bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().After(t.until) {
		t.wait(ctx)
	}
	return t.list, !t.known
}

// wait has one query answer all who wait. The caller has locked.
func (t *translation) wait(ctx context.Context) {
	if t.asked == nil {
		t.asked = make(chan struct{})
		go t.ask()
	}
	asked := t.asked
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-asked:
	case <-ctx.Done():
	}
}

func (t *translation) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), network.DefaultDial)
	defer cancel()
	found, err := t.resolver.LookupNetIP(ctx, "ip6", network.TranslationName+".")
	missing, _ := errors.AsType[*net.DNSError](err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.known = network.TranslatedPrefixes(found), err == nil || missing != nil && missing.IsNotFound
	t.until = time.Now().Add(translationRetry)
	if t.known {
		t.until = time.Now().Add(translationFor)
	}
	close(t.asked)
	t.asked = nil
}
