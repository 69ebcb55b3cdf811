package relay

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
)

// flowKey is one destination.
type flowKey struct {
	name, address string
	port          uint16
	via           string
}

// refusalKey is one thing that was refused.
type refusalKey struct {
	name, address string
	port          uint16
	why           string
}

// refusal counts the queries for addresses apart from others: a program that
// looks a name up makes several.
type refusal struct{ main, other int64 }

// carried is what connections came to.
type carried struct{ connections, sent, received int64 }

func (c carried) less(before carried) carried {
	return carried{c.connections - before.connections, c.sent - before.sent, c.received - before.received}
}

func (c carried) plus(other carried) carried {
	return carried{c.connections + other.connections, c.sent + other.sent, c.received + other.received}
}

func (c carried) addTo(f *api.NetworkFlow) {
	f.Connections += c.connections
	f.SentBytes += c.sent
	f.ReceivedBytes += c.received
}

// book is what has come since a moment.
type book struct {
	begun   time.Time // of the session
	flows   map[flowKey]*api.NetworkFlow
	refused map[refusalKey]*refusal
	// What there was no room for.
	more        carried
	moreRefused int64
	// What connections that live had carried, and the kernel had refused, before.
	before      map[*outer]carried
	unreachable int64
}

func newBook(begun time.Time) *book {
	return &book{
		begun: begun, flows: map[flowKey]*api.NetworkFlow{}, refused: map[refusalKey]*refusal{}, before: map[*outer]carried{},
	}
}

func (b *book) since(at time.Time) int64 { return at.Sub(b.begun).Milliseconds() }

// add counts a connection that has ended.
func (b *book) add(key flowKey, begun time.Time, part carried, err string) {
	f := b.flows[key]
	if f == nil {
		if len(b.flows) >= api.MaxNetworkEntries {
			b.more = b.more.plus(part)
			return
		}
		f = b.newFlow(key, begun)
		b.flows[key] = f
	}
	f.FirstMs = min(f.FirstMs, b.since(begun))
	f.LastMs = max(f.LastMs, b.since(time.Now()))
	f.Error = cmp.Or(err, f.Error)
	part.addTo(f)
}

func (b *book) newFlow(key flowKey, begun time.Time) *api.NetworkFlow {
	return &api.NetworkFlow{Name: key.name, Address: key.address, Port: int(key.port), Via: key.via, FirstMs: b.since(begun)}
}

func (b *book) refuse(key refusalKey, other bool) {
	r := b.refused[key]
	if r == nil {
		if len(b.refused) >= api.MaxNetworkEntries {
			b.moreRefused++
			return
		}
		r = &refusal{}
		b.refused[key] = r
	}
	if other {
		r.other++
	} else {
		r.main++
	}
}

// report is what there is so far; connections that live count.
func (b *book) report(live map[*outer]struct{}, unreachable int64) *api.Network {
	all, more := b.withLive(live)
	r := &api.Network{
		Mode: "grants", Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{},
		MoreFlows: more.connections, MoreSentBytes: more.sent, MoreReceivedBytes: more.received, MoreRefused: b.moreRefused,
		Unreachable: unreachable - b.unreachable,
	}
	for _, f := range all {
		r.Flows = append(r.Flows, f)
	}
	slices.SortFunc(r.Flows, func(a, b api.NetworkFlow) int {
		return cmp.Or(cmp.Compare(a.FirstMs, b.FirstMs), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	for key, count := range b.refused {
		r.Refused = append(r.Refused, api.NetworkRefusal{
			Name: key.name, Address: key.address, Port: int(key.port), Count: max(count.main, count.other), Why: key.why,
		})
	}
	slices.SortFunc(r.Refused, func(a, b api.NetworkRefusal) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Why, b.Why))
	})
	return r
}

// withLive are the flows, and what there was no room for, with what connections have
// carried that live.
func (b *book) withLive(live map[*outer]struct{}) (all map[flowKey]api.NetworkFlow, more carried) {
	all, more = map[flowKey]api.NetworkFlow{}, b.more
	for key, f := range b.flows {
		all[key] = *f
	}
	for o := range live {
		part := o.carried().less(b.before[o])
		if part == (carried{}) {
			continue
		}
		f, known := all[o.key]
		if !known && len(all) >= api.MaxNetworkEntries {
			more = more.plus(part)
			continue
		}
		if !known {
			f = *b.newFlow(o.key, o.begun)
		}
		part.addTo(&f)
		f.FirstMs, f.LastMs = min(f.FirstMs, b.since(o.begun)), b.since(time.Now())
		all[o.key] = f
	}
	return all, more
}

func addressOf(at netip.AddrPort) string {
	if !at.IsValid() {
		return ""
	}
	return at.Addr().Unmap().String()
}
