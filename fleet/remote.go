package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/start"
	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// remote is one call on its way to a worker and back. Its goroutine owns it, but for the
// queue.
type remote struct {
	f       *Fleet
	call    *Call
	request supervisor.Request
	where   place.Want
	queue

	wire     []byte
	state    start.Caller
	attempts []*attempt
	tried    []string
	refusals []refusal
	times
	given *attempt // that the go went to
	waits bool     // in the line
	// awaits is what it waits for there, here whether for this machine as well; guarded by
	// Fleet.mu where others read them.
	awaits awaited
	here   bool
	// turnedAway: it may not wait for this machine, or not any longer. release gives back the
	// slot that it has found there.
	turnedAway bool
	release    func()
	receiver   stream.Receiver
	partial    api.Partial
	result     portable.Joiner
	ready      *fleetv1.Ready // of the worker that has the go
	started    *fleetv1.Started
	gone       *gone
	sent       time.Duration // when a control was last sent
	goes       int
	aborted    int
	reason     api.Reason
	events     relay
	failed     *api.Result // of what ended it here

	conversation
}

// gone says why a call is lost.
type gone struct {
	reason  api.Reason
	running string
}

const (
	tickEvery = 100 * time.Millisecond
	// maxAsked is how many workers are asked for a slot.
	maxAsked = 3
	// prepareWait is how long a worker may say that it is still deciding about an offer: more
	// than it has for that.
	prepareWait = 2 * time.Minute
	// offerWait is how long an answer to an offer may take.
	offerWait = 10 * time.Second
	// goAgain is when a control is sent again that nothing was heard of, askAfter when it
	// is asked what became of a call that was silent.
	goAgain  = 250 * time.Millisecond
	askAfter = 3 * time.Second
	// lostMargin is how much longer than lease and grace a silent worker is waited for.
	lostMargin = 2 * time.Second
	// overdueMargin is how much longer than a call may take a worker is waited for that is
	// heard: its own queue, a kill that is hard and a slow machine are in it.
	overdueMargin = time.Minute
	// maxResultBytes bounds what a result has beside the output that it may keep.
	maxResultBytes = 64 << 20
	// maxResultJSON bounds its JSON beside output that is quoted there.
	maxResultJSON = 8 << 20
	// minContent is less than a content costs of what the call may keep, on average.
	minContent = 100
)

func (c *remote) run(ctx context.Context) {
	c.began, c.wake = now(), make(chan struct{}, 1)
	c.questions, c.yeses, c.replies = map[uint32]*question{}, map[uint32]func(){}, make(chan replied)
	c.events = relayOf(c.request)
	refused, err := c.encode(ctx)
	switch {
	case refused != nil:
		c.finish(refused)
		return
	case err != nil && c.mayRunHere():
		c.runsHere(ctx, func() {})
		return
	case err != nil:
		c.finish(refusedByName(c.request, []string{err.Error()}))
		return
	}
	c.events.begin()
	defer func() {
		for _, a := range c.attempts {
			c.f.leave(a)
		}
	}()
	defer c.endQuestions()
	defer c.leaveLine()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	done := ctx.Done()
	c.next(ctx)
	for !c.state.Phase().Over() {
		c.call.given.Store(c.state.Phase() != start.Placing)
		select {
		case <-c.wake:
			for _, x := range c.take() {
				c.arrive(ctx, x)
			}
			c.look()
		case <-tick.C:
			c.look()
			c.ackPending()
		case r := <-c.replies:
			c.reply(r)
		case reason := <-c.call.aborts:
			c.abort(reason)
		case <-done:
			done = nil
			c.abort(supervisor.ReasonOf(ctx))
		}
		c.next(ctx)
	}
	c.end(ctx)
	if c.receiver.Pending() {
		c.ack(c.given)
	}
}

// encode writes the call for the wire, with the hash of what this machine would run. What
// this machine would refuse is refused; the error is portable.ErrTooLong.
func (c *remote) encode(ctx context.Context) (refused *api.Result, err error) {
	sha256 := c.request.SHA256
	if c.request.Command == nil && sha256 == "" && !c.request.Tool.Adapter {
		if sha256, err = c.f.host.SHA256(c.request.Tool.Path); err != nil {
			if refused = c.f.host.Check(ctx, c.request); refused == nil {
				refused = failedHere(c.request, api.ReasonTool, err)
			}
			return refused, nil
		}
	}
	if path := c.request.Tool.Path; strings.Contains(path, "/") {
		c.request.Tool.Path, err = filepath.Abs(path)
	}
	if err == nil {
		c.wire, err = portable.Write(c.request, c.f.config.Supervisor, sha256)
	}
	if err != nil && !errors.Is(err, portable.ErrTooLong) {
		return failedHere(c.request, api.ReasonTool, err), nil
	}
	return nil, err
}

// next offers the call to another worker, until one that was asked has a slot for it, or may
// have one.
func (c *remote) next(ctx context.Context) {
	for c.state.Phase() == start.Placing && !c.unanswered() && c.mayAsk() {
		w, ok := c.choose()
		// Where the first one has no slot, the call may have to wait at several.
		implied := len(c.attempts) == 0 && c.harmless() && len(c.request.Secrets) == 0
		n := 0
		if ok {
			n, ok = c.state.Offer(implied)
		}
		switch {
		case ok:
			c.offer(ctx, w.Name, n, implied)
		case c.isOpen(), c.waitsForPlace(), c.waitsForHere():
			return
		default:
			c.state.Stop()
		}
	}
}

// offer sends an attempt to a worker. implied has that start it without a further word.
func (c *remote) offer(ctx context.Context, worker string, n int, implied bool) {
	c.tried = append(c.tried, worker)
	a := c.f.newAttempt(c, worker, n)
	c.attempts = append(c.attempts, a)
	if implied {
		if !c.record(ctx, worker) {
			c.state.Refused(n) // it was not sent
			return
		}
		c.noteGo(a)
	}
	if err := c.sendOffer(a, implied); err != nil {
		c.refused(a, "it cannot be sent the call: "+err.Error(), nil)
		c.refusals[len(c.refusals)-1].silent = errors.Is(err, errEngineLost)
	}
}

// sendOffer sends an offer, or sends it again: for its worker, or the worker's word about it,
// may not have got through.
func (c *remote) sendOffer(a *attempt, implied bool) error {
	a.sent = now()
	return c.f.offer(a, &fleetv1.Offer{Beat: a.beat, Request: c.wire, Go: implied, LeftMs: c.leftMs})
}

// noteGo notes that a worker is about to be told to start the call.
func (c *remote) noteGo(a *attempt) {
	c.given, c.placed, c.sent, c.goes, a.answered = a, now(), now(), 0, now() // to record it may have taken long
	c.leaveLine()
}

func (c *remote) choose() (place.Worker, bool) {
	if len(c.tried) >= maxAsked+c.silent() {
		return place.Worker{}, false
	}
	c.f.mu.Lock()
	workers := c.f.places()
	c.f.mu.Unlock()
	if k := c.request.Keep; k != nil && !k.Once {
		return place.Home(workers, c.where, c.tried, portable.Definition(c.request))
	}
	return place.Choose(workers, c.where, c.tried, rand.IntN)
}

func (c *remote) refused(a *attempt, why string, never *fleetv1.Never) {
	c.state.Refused(a.n)
	a.over.Store(true)
	c.refusals = append(c.refusals, refusal{of: a, why: why, never: never})
}

// arrive takes a message.
func (c *remote) arrive(ctx context.Context, x arrived) {
	x.a.answered = now()
	if len(x.frames) == 0 {
		c.onNotConnected(x.a)
	}
	for _, f := range x.frames {
		c.frame(ctx, x.a, f)
	}
}

func (c *remote) frame(ctx context.Context, a *attempt, f *fleetv1.Frame) {
	if a.doubted {
		c.f.answerLate(a.id, a.inbox, f)
		return
	}
	chosen, has := c.state.Chosen()
	switch what := f.What.(type) {
	case *fleetv1.Frame_Ready:
		c.onReady(ctx, a, what.Ready)
	case *fleetv1.Frame_Queued:
		c.onQueued(a, what.Queued)
	case *fleetv1.Frame_Never:
		switch {
		case c.state.Open(a.n), has && chosen == a.n && c.state.Phase() == start.Committed:
			c.never(a, what.Never)
		case has && chosen == a.n: // which has said that it had started it
			c.lose(a, api.ReasonProtocol, "unknown")
		}
	case *fleetv1.Frame_Started:
		c.state.Started(a.n)
		if has && chosen == a.n {
			if c.started == nil || c.started.TimeoutMs != what.Started.GetTimeoutMs() { // with secrets it is known late
				c.begun = now()
			}
			c.started, c.ready = what.Started, cmp.Or(c.ready, what.Started.GetReady())
		}
	case *fleetv1.Frame_Gone:
		running := "unknown"
		if what.Gone.Swept {
			running = "no"
		}
		c.lose(a, api.ReasonWorkerDied, running)
	case *fleetv1.Frame_Unknown:
		c.onForgotten(a)
	case *fleetv1.Frame_Data:
		if has && chosen == a.n {
			c.state.Started(a.n)
			c.data(ctx, a, what.Data)
		}
	}
}

// lose ends a call that nothing more will come of.
func (c *remote) lose(a *attempt, reason api.Reason, running string) {
	if chosen, has := c.state.Chosen(); has && chosen == a.n {
		c.gone = &gone{reason, running}
		c.state.Gone(a.n)
	}
}

// data takes the next frame of the call's stream.
func (c *remote) data(ctx context.Context, a *attempt, d *fleetv1.Data) {
	size := len(d.GetEvent()) + len(d.Text) + len(d.GetLong().GetPiece()) + len(d.GetResult()) + len(d.GetResultEnd()) + len(d.GetQuestion().GetQuestion()) // it has one of them
	if !c.receiver.Take(d.Seq, d.Missed, size) {
		c.ack(a) // it was taken before, or one before it is missing
		return
	}
	c.partial.Missed += int(d.Missed)
	c.events.missed += int(d.Missed)
	switch what := d.What.(type) {
	case nil:
		c.lose(a, api.ReasonProtocol, "unknown")
	case *fleetv1.Data_Event:
		c.event(what.Event, d.Text)
	case *fleetv1.Data_Question:
		c.asked(ctx, what.Question)
	case *fleetv1.Data_Settled:
		c.settled(what.Settled)
	case *fleetv1.Data_Left:
		c.left(what.Left)
	case *fleetv1.Data_Unused:
		c.unused(what.Unused)
	case *fleetv1.Data_Long:
		c.collect(a, portable.Piece{Long: true, Of: what.Long.GetOf(), Bytes: what.Long.GetPiece()})
	case *fleetv1.Data_Result:
		c.collect(a, portable.Piece{Bytes: what.Result})
	case *fleetv1.Data_ResultEnd:
		c.collect(a, portable.Piece{Bytes: what.ResultEnd})
		c.state.Result(a.n) // which is acknowledged once it is handed over
	}
	if c.receiver.Owes() && !c.state.Phase().Over() {
		c.ack(a)
	}
}

// collect takes a piece of the result, up to what the call may keep of stdout, stderr and
// content.
func (c *remote) collect(a *attempt, p portable.Piece) {
	c.came = now()
	kept := c.limits().OutputBytes
	if !c.result.Add(p, 3*kept+maxResultBytes, 6*kept+maxResultJSON) {
		c.lose(a, api.ReasonProtocol, "unknown")
	}
}

// limits are those that the call is sent with.
func (c *remote) limits() supervisor.Limits {
	return c.request.Limits.Over(c.f.config.Supervisor.Limits).Over(supervisor.DefaultLimits())
}

func (c *remote) ack(a *attempt) {
	c.receiver.Acked()
	c.f.control(a.id, a.inbox, &fleetv1.Control{What: &fleetv1.Control_Ack{Ack: &fleetv1.Ack{Through: c.receiver.Taken()}}})
}

// ackPending acknowledges what was not worth a message of its own.
func (c *remote) ackPending() {
	if n, has := c.state.Chosen(); has && c.receiver.Pending() {
		c.ack(c.attempts[n])
	}
}

func (c *remote) event(raw, text []byte) {
	var e api.Event
	if json.Unmarshal(raw, &e) != nil || !credible(e) {
		return
	}
	e.CallID, e.Tool, e.Time = c.request.ID, c.request.ToolName(), time.Now() // its clock may be another
	if e.Content != nil && len(text) > 0 {
		e.Content.Text = string(text)
	}
	if e.Kind == api.EventStarted && c.ran == 0 {
		c.ran = now()
	}
	c.partial.Take(e)
	c.events.send(e)
}
