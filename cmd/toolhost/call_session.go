package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
)

// callSession is the one turn of a callCommand. The turn lives as long as the
// stream of its events: nothing runs on for a command that has died.
type callSession struct {
	daemon *remote
	flags  *callFlags
	view   *present.View
	asks   *terminal.Interactor // nil if nobody can be asked
	turnID string

	ctx     context.Context // of all requests; ended by a third Ctrl-C
	giveUp  context.CancelCauseFunc
	waiting sync.WaitGroup
	open    map[string]context.CancelFunc // questions on the terminal; the reader's
}

func (c *callCommand) session(daemon *remote, call api.Call) (*api.Result, error) {
	view := present.NewView(os.Stderr, present.Options{Live: c.flags.live(), Single: true})
	defer view.Close()
	s := &callSession{daemon: daemon, flags: &c.flags, view: view, asks: c.flags.interactor(view), open: map[string]context.CancelFunc{}}
	s.ctx, s.giveUp = context.WithCancelCause(context.Background())
	defer s.giveUp(nil)
	if s.asks != nil {
		defer s.asks.Close()
		s.asks.Interrupted = s.abort // before the denial is heard
	}
	return s.run(call)
}

func (s *callSession) run(call api.Call) (*api.Result, error) {
	stream, err := s.daemon.Open(s.ctx, api.TurnSpec{Headless: s.asks == nil})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	first, err := stream.Next()
	if err != nil {
		return nil, err
	}
	s.turnID = first.TurnID
	defer s.abortOnSignal()()
	shown := s.follow(stream, first)
	results, err := s.daemon.Run(s.ctx, s.turnID, []api.Call{call})
	if err == nil && len(results) != 1 {
		err = fmt.Errorf("bug: there are %d results of one call", len(results))
	}
	if err != nil {
		stream.Close()
		<-shown
		return nil, err
	}
	s.end(results[0], stream)
	<-shown
	return results[0], nil
}

// stopTime is how long a daemon that stops may take to end the turn. A worker that stops
// says the same of its calls, and the daemon goes on.
const stopTime = 5 * time.Second

// end ends the turn, as closing the stream does, too. A daemon that stops has ended it:
// by a socket of systemd's, one more request would start it again.
func (s *callSession) end(result *api.Result, stream *client.Stream) {
	if result.Reason != api.ReasonShutdown {
		_ = s.daemon.End(s.ctx, s.turnID)
		return
	}
	time.AfterFunc(stopTime, func() { stream.Close() })
}

// maxUnshown is how many events may wait for the screen, while a question has
// it, before no more are read.
const maxUnshown = 1024

// follow shows the events and puts the questions until the stream ends.
func (s *callSession) follow(stream *client.Stream, first api.Record) <-chan struct{} {
	done, unshown := make(chan struct{}), make(chan []byte, maxUnshown)
	s.waiting.Go(func() {
		for raw := range unshown {
			s.showEvent(raw)
		}
	})
	go func() {
		defer close(done)
		defer s.waiting.Wait()
		defer close(unshown)
		defer s.closeQuestions()
		for e, err := first, error(nil); err == nil; e, err = stream.Next() {
			s.view.Take(e.Event)
			s.question(e)
			if s.flags.events {
				unshown <- asJournalled(e).JSON
			}
		}
	}()
	return done
}

// showEvent prints an event, once nobody else has the screen.
func (s *callSession) showEvent(raw []byte) {
	s.view.Lock()
	defer s.view.Unlock()
	_ = printRaw(os.Stderr, raw)
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
