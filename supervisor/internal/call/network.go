package call

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Reached ends the connections of a call's processes, or where these live on says
// what they came to since the call began. That is wanted until by. drain lets what was
// sent arrive.
type Reached func(c *Call, by time.Time, livesOn, drain bool) *api.Network

// Ending begins the end of the connections of processes that are being killed.
type Ending func(by time.Time, drain bool)

// PassedNetwork says that the call's network has passed the limit of that name.
func (c *Call) PassedNetwork(limit string) {
	c.send(breach{outcome.CauseNetwork, api.Reason(limit)})
}

// AskNetwork has people asked whether the tool may reach a name; false if the call
// is over. Otherwise settle is called once, with the answer or with why there is no
// yes, and returns before another call can have the processes. The call waits for the
// answer until waits ends.
func (c *Call) AskNetwork(waits context.Context, name string, port uint16, settle func(a spec.Answer, why string)) bool {
	return c.send(networkAsk{waits: waits, to: fmt.Sprintf("%s:%d", name, port), settle: settle})
}

type (
	networkAsk struct {
		waits  context.Context
		to     string
		settle func(a spec.Answer, why string)
	}
	networkLeft     struct{ of *reachWait }
	networkAnswered struct {
		of     *reachWait
		to     string
		answer spec.Answer
	}
)

// reachWait is the call's wait for the answer about a name.
type reachWait struct{ over bool }

// take asks. The call's clocks stand still until the answer, or until no connection
// waits for it.
func (in networkAsk) take(o *owner, now time.Time) {
	settle := func(a spec.Answer, why string) { o.helpers.Go(func() { in.settle(a, notGranted+", and "+why) }) }
	before, known := o.tool.reached[in.to]
	switch {
	case known:
		settle(before, whyDenied(before))
		return
	case o.p.Request.Ask == nil:
		settle(spec.Answer{Denied: api.OutcomeHeadless}, "nobody is there to be asked")
		return
	case o.state != stateRunning || o.tool.questions == maxQuestions || o.tool.reaches == maxQuestions:
		settle(spec.Answer{Denied: api.OutcomeFailed}, "nobody could be asked")
		return
	}
	o.tool.questions++
	o.tool.reaches++
	o.clock.Paused(now)
	o.moveTimer(now)
	of := &reachWait{}
	o.helpers.Go(func() {
		answer := in.ask(o, of)
		o.send(networkAnswered{of, in.to, answer}) // before the tool can try again
		in.settle(answer, notGranted+", and "+whyDenied(answer))
	})
}

// ask asks until the call ends, or nobody waits any more: the question may stay
// open then.
func (in networkAsk) ask(o *owner, of *reachWait) spec.Answer {
	ctx, cancel := context.WithCancel(o.lifetime)
	defer cancel()
	stop := context.AfterFunc(in.waits, func() {
		o.send(networkLeft{of})
		cancel()
	})
	defer stop()
	return o.p.Request.Ask(ctx, spec.Question{
		ID: "network " + in.to, Prompt: fmt.Sprintf("%s wants %s", o.p.Label, in.to), Reach: in.to,
	})
}

func (in networkLeft) take(o *owner, now time.Time) { in.of.end(o, now) }

// take remembers for the call what was not for one connection alone.
func (in networkAnswered) take(o *owner, now time.Time) {
	o.tool.reaches--
	given := in.answer.Denied != api.OutcomeCancelled || !in.of.over
	if given && (in.answer.Always || in.answer.Denied != "" || string(in.answer.Value) != "true") {
		o.tool.remember(in.to, in.answer)
	}
	in.of.end(o, now)
}

// end has the call's clocks go on, once.
func (w *reachWait) end(o *owner, now time.Time) {
	if w.over {
		return
	}
	w.over = true
	o.tool.questions--
	o.clock.Resumed(now)
	o.moveTimer(now)
}

func (t *tool) remember(to string, a spec.Answer) {
	if t.reached == nil {
		t.reached = map[string]spec.Answer{}
	}
	if len(t.reached) < maxReached {
		t.reached[to] = a
	}
}

// maxReached bounds the answers about names that a call remembers.
const maxReached = 256

func whyDenied(a spec.Answer) string {
	switch a.Denied {
	case "", string(api.ReasonUser):
		return "a human has denied it"
	case api.OutcomeTimedOut:
		return "nobody has approved it in time"
	case api.OutcomeHeadless:
		return "nobody is there to be asked"
	}
	return "the question failed: " + a.Denied
}

// reached is what the call's network came to; nil for a call without processes. It
// comes before the answer. The tool may have ended by a limit before the word of that came;
// kept processes that have passed one are of no use to later calls.
func (o *owner) reached() *api.Network {
	if o.tree == nil || o.Reached == nil {
		return nil
	}
	n := o.Reached(o.Call, o.hardLimit().Add(-lastMoment), o.after != nil, o.found.Cause == outcome.CauseNone && o.found.Survivors == 0)
	if n != nil && n.Limit != "" {
		o.found.OverNetwork = n.Limit
		if o.after != nil {
			o.tree.Wear()
		}
	}
	return n
}
