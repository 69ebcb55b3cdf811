package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
)

// callSession is the one turn of a callCommand, one request: nothing runs on for a
// command that has died.
type callSession struct {
	daemon *remote
	flags  *callFlags
	view   *present.View
	asks   *terminal.Interactor // nil if nobody can be asked
	turnID string
	// partial is the call's output as far as it has come.
	partial api.Partial
	where   *api.Where // the worker that it was given to; nil for the daemon's own machine
	began   time.Time

	ctx     context.Context // of all requests; ended by a third Ctrl-C
	giveUp  context.CancelCauseFunc
	begun   func() bool // has the end of the command's context give up no longer
	waiting sync.WaitGroup
	open    map[string]context.CancelFunc // questions on the terminal
}

// session makes the call; ctx ends what waits for its first event. From there on a signal
// aborts it.
func (c *callCommand) session(ctx context.Context, daemon *remote, call api.Call) (*api.Result, error) {
	view := present.NewView(os.Stderr, present.Options{Live: c.flags.live(), Single: true})
	defer view.Close()
	s := &callSession{daemon: daemon, flags: &c.flags, view: view, asks: c.flags.interactor(view), open: map[string]context.CancelFunc{}, began: time.Now()}
	s.ctx, s.giveUp = context.WithCancelCause(context.Background())
	defer s.giveUp(nil)
	s.begun = context.AfterFunc(ctx, func() { s.giveUp(errGaveUp) })
	defer s.begun()
	if s.asks != nil {
		defer s.asks.Close()
		s.asks.Interrupted = s.abort // before the denial is heard
	}
	return s.run(call)
}

func (s *callSession) run(call api.Call) (*api.Result, error) {
	show, shown := s.show()
	results, err := s.daemon.RunTurnEvents(s.ctx, api.TurnSpec{Headless: s.asks == nil}, []api.Call{call}, show)
	shown()
	switch {
	case errors.Is(err, client.ErrBrokenOff) && s.ctx.Err() == nil:
		return s.lost(call, err), nil
	case err == nil && len(results) != 1:
		err = fmt.Errorf("bug: there are %d results of one call", len(results))
	}
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// lost is the result of a call whose daemon has died, or is out of reach.
func (s *callSession) lost(call api.Call, why error) *api.Result {
	r := supervisor.Verdict{CallID: call.ID, Tool: call.Tool, Status: api.StatusLost, Reason: api.ReasonUnreachable}.Result()
	r.TurnID, r.Timing.ElapsedMs = s.turnID, time.Since(s.began).Milliseconds()
	r.Retry = api.Retry{SideEffects: "possible", Hint: "look first at what the call has changed"}
	s.partial.Fill(r)
	if s.partial.Cut() {
		r.Warnings = append(r.Warnings, "not all of the output has arrived")
	}
	end := "The daemon's end kills all of its tools' processes, and so does the loss of the connection."
	if s.where != nil {
		r.Where = s.where
		end = fmt.Sprintf("Where the daemon has died, its worker %s ends it with the lease, 10s by default, and the grace period: it may run until then.", s.where.Worker)
	}
	r.Message = fmt.Sprintf("[LOST] Tool %q was lost with its daemon: %v. %s %s Side effects may have happened.", r.Tool, why, s.partial.Arrived(), end)
	return r
}

// maxUnshown is how many events may wait for the screen, while a question has
// it, before no more are read.
const maxUnshown = 1024

// show shows the events and puts the questions, until shown is called. From the first event
// on a signal aborts the turn; before it, it ends this process, and so the turn.
func (s *callSession) show() (show func(api.Record), shown func()) {
	unshown, release := make(chan []byte, maxUnshown), func() {}
	s.waiting.Go(func() {
		for raw := range unshown {
			s.showEvent(raw)
		}
	})
	show = func(e api.Record) {
		if s.turnID == "" {
			s.begun()
			s.turnID, release = e.TurnID, s.abortOnSignal()
		}
		s.view.Take(e.Event)
		s.partial.Take(e.Event)
		if e.Kind == api.EventPlaced {
			s.where = e.At()
		}
		s.question(e)
		if s.flags.events {
			unshown <- present.EventJSON(e)
		}
	}
	return show, func() {
		close(unshown)
		s.closeQuestions()
		s.waiting.Wait()
		release()
	}
}

// showEvent prints an event, once nobody else has the screen.
func (s *callSession) showEvent(raw []byte) {
	s.view.Lock()
	defer s.view.Unlock()
	_ = present.Raw(os.Stderr, raw)
}

// question asks on the terminal, and takes back what somebody else has answered.
func (s *callSession) question(e api.Record) {
	switch {
	case s.asks == nil:
	case e.Kind == api.EventInteractionRequest:
		ctx, cancel := context.WithCancel(s.ctx)
		s.open[e.InteractionID] = cancel
		s.waiting.Go(func() { s.ask(ctx, e.InteractionID) })
	case e.Kind == api.EventInteractionResponse && s.open[e.InteractionID] != nil:
		s.open[e.InteractionID]()
		delete(s.open, e.InteractionID)
	}
}

func (s *callSession) closeQuestions() {
	for _, cancel := range s.open {
		cancel()
	}
}

// lateAnswer is how long after its end a question may stay on the terminal if
// the daemon says nothing of it.
const lateAnswer = 5 * time.Second

func (s *callSession) ask(ctx context.Context, id string) {
	q, ok := s.pending(ctx, id)
	if !ok {
		return // it is over already
	}
	ctx, cancel := context.WithDeadline(ctx, q.ExpiresAt.Add(lateAnswer))
	defer cancel()
	a, err := s.asks.Ask(ctx, q)
	if err != nil {
		return // others may answer
	}
	err = s.daemon.Answer(s.ctx, id, a)
	if err != nil && !client.IsNotFound(err) { // nobody waits for it any more
		s.view.Print("toolhost: the answer was not taken: " + terminal.OneLine(err.Error()) + "\n")
	}
}

// pending is a question as the daemon has it: events do not tell all of it.
func (s *callSession) pending(ctx context.Context, id string) (api.Interaction, bool) {
	info, err := s.daemon.Turn(ctx, s.turnID)
	if err != nil {
		return api.Interaction{}, false
	}
	for _, i := range info.PendingInteractions {
		if i.ID == id {
			return i, true
		}
	}
	return api.Interaction{}, false
}

// abort aborts the turn; again, it kills at once.
func (s *callSession) abort() { _ = s.daemon.Abort(s.ctx, s.turnID) }

// abortOnSignal makes the first signal the kill ladder, the second a kill, and
// the third the end of the wait for a daemon that does not answer.
func (s *callSession) abortOnSignal() (release func()) {
	var aborting sync.WaitGroup
	stop := onSignals(func(n int) {
		if n > 2 {
			s.giveUp(errGaveUp)
			return
		}
		aborting.Go(s.abort)
	})
	return func() {
		if context.Cause(s.ctx) != errGaveUp { // else a fourth would end this process before it has said so
			stop()
		}
		aborting.Wait()
	}
}
