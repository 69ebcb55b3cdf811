package turn

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/api"
)

// rest has a call give its places back, in the turn and beside other turns, while its
// server waits for answers: the process has ended, with proof, or is a kept one that is done
// with the call, and nothing of it runs. Nobody may ever answer. An exclusive call that runs
// meanwhile finds what this one has done so far; by the protocol the server, for its part,
// takes each round as a request of its own, and has to look at what it finds.
//
// A call whose process is there and waits for an answer does not rest: another one could
// change things under its hands. It keeps its places.
func (r *rounds) rest() {
	b, e := r.b, r.e
	b.afterEvents(r.s, func() {
		b.count(e, false)
		e.place.stop()
		e.place.rests, e.place.has = true, false
		if e.call.Leave != nil {
			e.call.Leave()
		}
		b.advance()
	})
}

// again waits in line for the places of a call that rests. An error says why it gets none;
// ctx ends with an abort.
func (r *rounds) again(ctx context.Context) (err error) {
	placed := make(chan error, 1)
	r.b.t.do(func() {
		r.e.place.again, r.e.place.since = placed, r.b.t.now()
		r.b.advance()
	})
	select {
	case err = <-placed:
	case <-ctx.Done():
	}
	return err
}

// goesOn has a call that rested run again, or says why it cannot.
func (b *batch) goesOn(e *entry, err error) {
	p := &e.place
	p.lined += b.t.now().Sub(p.since)
	p.again <- err
	p.again = nil
	if err == nil {
		p.rests = false
		b.count(e, true)
	}
}

// runs says whether something of the call may run.
func (e *entry) runs() bool { return e.stage == stageRunning && !e.place.rests }

// inLine says whether the call waits for its place.
func (e *entry) inLine() bool {
	return e.stage == stageReady || e.stage == stageRunning && e.place.again != nil
}

// placeless is the result of a call that cannot go on after it has rested.
func placeless(c Call, err error) *api.Result {
	return overloaded(c, api.ReasonSession, fmt.Sprintf("[FAILED] The call of tool %q has begun, and did not go on after its server had asked for something: %s.", c.Tool, err))
}
