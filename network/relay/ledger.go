package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

// ledger counts what a session's connections came to: altogether, and since each of
// the calls began that a kept process serves.
type ledger struct {
	begun time.Time

	mu    sync.Mutex
	whole *book
	calls map[string]*book
	live  map[*outer]struct{}
}

func newLedger() *ledger {
	begun := time.Now()
	return &ledger{begun: begun, whole: newBook(begun), calls: map[string]*book{}, live: map[*outer]struct{}{}}
}

// begin counts for a call from now on.
func (l *ledger) begin(call string, unreachable int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := newBook(l.begun)
	b.unreachable = unreachable
	for o := range l.live {
		b.before[o] = o.carried()
	}
	l.calls[call] = b
}

// books are all that count. The ledger is locked.
func (l *ledger) books(yield func(*book) bool) {
	if !yield(l.whole) {
		return
	}
	for _, b := range l.calls {
		if !yield(b) {
			return
		}
	}
}

// failed records a connection that was never made.
func (l *ledger) failed(key flowKey, begun time.Time, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.books {
		b.add(key, begun, carried{connections: 1}, err)
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
	all := o.carried()
	for b := range l.books {
		if part := all.less(b.before[o]); part != (carried{}) || err != "" {
			b.add(o.key, o.begun, part, err)
		}
		delete(b.before, o)
	}
}

// broke has the flow of a connection that has ended say what broke it, if anything.
func (l *ledger) broke(o *outer, err string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.books {
		if f := b.flows[o.key]; f != nil && err != "" {
			f.Error = err
		}
	}
}

// refuse counts a refusal; other is a query that is not the main one of its kind.
func (l *ledger) refuse(key refusalKey, other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.books {
		b.refuse(key, other)
	}
}

// report is what there is so far; connections that live count.
func (l *ledger) report(unreachable int64) *api.Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole.report(l.live, unreachable)
}

// end is what has come since a call began, which no longer counts; nil where it never did.
func (l *ledger) end(call string, unreachable int64) *api.Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.calls[call]
	if b == nil {
		return nil
	}
	delete(l.calls, call)
	return b.report(l.live, unreachable)
}

// begunCalls are those that count still.
func (l *ledger) begunCalls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.calls))
}
