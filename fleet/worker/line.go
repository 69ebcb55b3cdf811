package worker

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// readyFor is how long a prepared call waits for its go.
const readyFor = 2 * time.Second

// full says whether an offer can neither have a slot nor wait for one.
func (w *Worker) full(hasGo bool) bool {
	return w.free <= 0 && (hasGo || len(w.line) >= place.PlacesPerSlot*w.config.Slots)
}

// seat gives an offer a slot, or a place in the line. The caller holds mu, as in all that
// follows.
func (w *Worker) seat(a *attempt) {
	if w.free == 0 {
		a.waits, w.line = true, append(w.line, a)
	} else if w.hold(a); w.free == 0 {
		go w.beat()
	}
}

func (w *Worker) hold(a *attempt) {
	a.holdsSlot = true
	w.free--
}

// release gives back what an attempt has of slots and places, and the slot to the one that
// has waited longest.
func (w *Worker) release(a *attempt) {
	if a.waits {
		a.waits = false
		w.line = slices.DeleteFunc(w.line, func(other *attempt) bool { return other == a })
	}
	if !a.holdsSlot {
		return
	}
	a.holdsSlot = false
	w.free++
	for w.free > 0 && len(w.line) > 0 {
		next := w.line[0]
		next.waits, w.line = false, w.line[1:]
		w.hold(next)
		w.takeUp(next)
	}
	if w.free == 1 {
		go w.beat()
	}
}

// takeUp answers an offer that is prepared and has a slot. To the rule of package start an
// offer that has waited for one is one that was late on its way.
func (w *Worker) takeUp(a *attempt) {
	c := w.callers[a.id.Caller]
	switch {
	case a.preparing:
		return // it is taken up then
	case a.waits:
		w.notYet(a)
		return
	case a.state == start.Unseen && a.call == nil: // it has waited
		w.prepareBeside(a)
		return
	case c.hold.Over(now()):
		w.expire(a, nil)
	case a.offer == start.OfferAndGo && a.state == start.Unseen:
		w.admit(c, a, nil)
	}
	w.answer(a, a.offer)
	if a.state == start.Prepared {
		time.AfterFunc(readyFor, func() { w.tooLate(a) })
	}
}

// tooLate ends the wait for a go.
func (w *Worker) tooLate(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.state == start.Prepared {
		w.expire(a, &fleetv1.Never{Detail: "its go has not come"})
		w.tell(a, start.SayNever)
	}
}
