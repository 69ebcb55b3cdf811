package relay

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

// maxEntries bounds the flows and the refusals of a report.
const maxEntries = 100

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

// ledger counts what a session's connections came to.
type ledger struct {
	begun time.Time

	mu                     sync.Mutex
	flows                  map[flowKey]*api.NetworkFlow
	refused                map[refusalKey]*refusal
	moreFlows, moreRefused int64
	live                   map[*outer]struct{}
}

func newLedger() *ledger {
	return &ledger{
		begun: time.Now(), flows: map[flowKey]*api.NetworkFlow{}, refused: map[refusalKey]*refusal{}, live: map[*outer]struct{}{},
	}
}

func (l *ledger) since(at time.Time) int64 { return at.Sub(l.begun).Milliseconds() }

// flow is the entry of a destination; nil where there are too many. The ledger is
// locked.
func (l *ledger) flow(key flowKey, at time.Time) *api.NetworkFlow {
	f := l.flows[key]
	if f == nil {
		if len(l.flows) >= maxEntries {
			l.moreFlows++
			return nil
		}
		f = &api.NetworkFlow{
			Name: key.name, Address: key.address, Port: int(key.port), Via: key.via, FirstMs: l.since(at), LastMs: l.since(at),
		}
		l.flows[key] = f
	}
	f.FirstMs = min(f.FirstMs, l.since(at))
	f.LastMs = max(f.LastMs, l.since(time.Now()))
	return f
}

// failed records a connection that was never made.
func (l *ledger) failed(key flowKey, begun time.Time, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flow(key, begun); f != nil {
		f.Connections++
		f.Error = err
	}
}

// connected takes a connection that has been made.
func (l *ledger) connected(o *outer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[o] = struct{}{}
}

// ended adds a connection's bytes to its destination, once.
func (l *ledger) ended(o *outer, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, lives := l.live[o]; !lives {
		return
	}
	delete(l.live, o)
	if f := l.flow(o.key, o.begun); f != nil {
		o.addTo(f)
		f.Error = cmp.Or(err, f.Error)
	}
}

// refuse counts a refusal; other is a query that is not the main one of its kind.
func (l *ledger) refuse(key refusalKey, other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.refused[key]
	if r == nil {
		if len(l.refused) >= maxEntries {
			l.moreRefused++
			return
		}
		r = &refusal{}
		l.refused[key] = r
	}
	if other {
		r.other++
	} else {
		r.main++
	}
}

// report is what there is so far; connections that live count.
func (l *ledger) report() *api.Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[flowKey]api.NetworkFlow{}
	for key, f := range l.flows {
		all[key] = *f
	}
	more := l.moreFlows
	for o := range l.live {
		f, known := all[o.key]
		if !known {
			if len(all) >= maxEntries {
				more++
				continue
			}
			f = api.NetworkFlow{Name: o.key.name, Address: o.key.address, Port: int(o.key.port), Via: o.key.via, FirstMs: l.since(o.begun)}
		}
		o.addTo(&f)
		f.FirstMs, f.LastMs = min(f.FirstMs, l.since(o.begun)), l.since(time.Now())
		all[o.key] = f
	}
	r := &api.Network{Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}, MoreFlows: more, MoreRefused: l.moreRefused}
	for _, f := range all {
		r.Flows = append(r.Flows, f)
	}
	slices.SortFunc(r.Flows, func(a, b api.NetworkFlow) int {
		return cmp.Or(cmp.Compare(a.FirstMs, b.FirstMs), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	for key, count := range l.refused {
		r.Refused = append(r.Refused, api.NetworkRefusal{
			Name: key.name, Address: key.address, Port: int(key.port), Count: max(count.main, count.other), Why: key.why,
		})
	}
	slices.SortFunc(r.Refused, func(a, b api.NetworkRefusal) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Why, b.Why))
	})
	return r
}

func addressOf(at netip.AddrPort) string {
	if !at.IsValid() {
		return ""
	}
	return at.Addr().Unmap().String()
}
