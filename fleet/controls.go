package fleet

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// onReady sends the go to the first worker that is, once that is on record.
func (c *remote) onReady(ctx context.Context, a *attempt, r *fleetv1.Ready) {
	first := c.state.Open(a.n)
	if first {
		var err error
		if len(c.request.Secrets) > 0 {
			err = c.f.vouched(a, r)
		}
		if err != nil {
			c.refused(a, "it cannot be given secrets: "+err.Error(), nil)
			c.void([]int{a.n})
			return
		}
		c.ready = r
		if !c.record(ctx, a.id.Worker) {
			return
		}
	}
	send, voided := c.state.Ready(a.n)
	c.void(voided)
	for _, n := range voided { // it has refused nothing
		c.mayTry(c.attempts[n])
	}
	switch send {
	case start.Go:
		if first {
			c.noteGo(a)
		}
		c.sendGo(a)
	case start.Void:
		c.void([]int{a.n})
	}
}

// record puts on record that a worker is about to be told to start the call, or waits until
// it is on record that there is the call; where that is not possible, the call is over.
func (c *remote) record(ctx context.Context, worker string) bool {
	if err := c.askLeft(c.request.Left); err != nil {
		c.failed = failedHere(c.request, api.ReasonHost, err)
	}
	switch {
	case c.failed != nil:
	case c.request.Placed != nil:
		if err := c.request.Placed(worker, len(c.attempts)); err != nil {
			c.failed = unrecorded(c.request, err)
		}
	case c.request.OnRecord != nil:
		if err := c.onRecord(ctx); err != nil && c.aborted == 0 {
			c.failed = failedHere(c.request, api.ReasonHost, err)
		}
	}
	if c.failed != nil {
		c.void(c.state.Stop())
	}
	return c.failed == nil && c.aborted == 0
}

// onRecord waits for the caller's OnRecord, which an abort cuts short.
func (c *remote) onRecord(ctx context.Context) (err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan error, 1)
	go func() { said <- c.request.OnRecord(within) }()
	select {
	case err = <-said:
		if err != nil && ctx.Err() != nil {
			c.abort(supervisor.ReasonOf(ctx))
		}
	case reason := <-c.call.aborts:
		cancel()
		err = <-said
		c.abort(reason)
	}
	return err
}

// harmless says whether the call may be made twice.
func (c *remote) harmless() bool { return c.request.Tool.ReadOnly || c.request.Tool.Idempotent }

func (c *remote) sendGo(a *attempt) {
	c.goes++
	g := &fleetv1.Go{LeftMs: c.leftMs}
	if secrets := c.request.Secrets; len(secrets) > 0 {
		values := make([]string, len(secrets))
		for i, s := range secrets {
			values[i] = s.Value
		}
		g.Secrets, _ = c.f.curve.Seal(values, c.ready.GetXkey()) // one that fails is refused there
		g.Xkey = c.f.curve.Public()
	}
	c.send(a, &fleetv1.Control{What: &fleetv1.Control_Go{Go: g}})
}

func (c *remote) send(a *attempt, ctl *fleetv1.Control) {
	c.sent = now()
	c.f.control(a.id, a.inbox, ctl)
}

func (c *remote) void(attempts []int) {
	for _, n := range attempts {
		c.attempts[n].over.Store(!c.attempts[n].doubted)
		c.send(c.attempts[n], &fleetv1.Control{What: &fleetv1.Control_Void{Void: &fleetv1.Void{}}})
	}
}

func (c *remote) ask(a *attempt) {
	c.send(a, &fleetv1.Control{What: &fleetv1.Control_Query{Query: &fleetv1.Query{}}})
}

// abort begins the ladder at the worker, or gives up the search for one.
func (c *remote) abort(reason api.Reason) {
	if c.aborted == 0 {
		c.reason, c.ended = reason, now()
	}
	c.aborted++
	c.void(c.state.Stop())
	if n, has := c.state.Chosen(); has {
		c.sendAbort(c.attempts[n])
	}
}

func (c *remote) sendAbort(a *attempt) {
	c.send(a, &fleetv1.Control{What: &fleetv1.Control_Abort{Abort: &fleetv1.Abort{Reason: string(c.reason), AtOnce: c.aborted > 1}}})
}
