package turn

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/api"
)

// placement is where a call stands with its places, those among calls of other turns too.
type placement struct {
	wait  func()        // ends the wait for that among calls of other turns; nil before it
	has   bool          // it has that place
	rests bool          // between two processes: it holds no place
	again chan<- error  // it rested, and waits in line; nil otherwise
	since time.Time     // when it began to
	lined time.Duration // for how long it did
}

// stop ends the wait for the place among calls of other turns.
func (p *placement) stop() {
	if p.wait != nil {
		p.wait()
		p.wait = nil
	}
}

// place says whether a call has its place among those of other turns. The first
// time it begins to wait for that.
func (b *batch) place(e *entry) bool {
	if e.call.Place == nil || e.place.has {
		return true
	}
	if e.place.wait == nil {
		var ctx context.Context
		ctx, e.place.wait = context.WithCancel(context.Background())
		b.t.helpers.Go(func() {
			err := e.call.Place(ctx)
			b.t.post(func() { b.onPlace(e, err) })
		})
	}
	return false
}

// onPlace goes on with a call that has waited for its place.
func (b *batch) onPlace(e *entry, err error) {
	if !e.inLine() {
		return
	}
	switch e.place.has = err == nil; {
	case e.place.has:
	case e.place.again != nil:
		b.goesOn(e, err)
	default:
		b.finish(e, overloaded(e.call, api.ReasonSession, notMade(e.call, err.Error())))
	}
	b.advance()
	b.endIfOver()
}
