package main

import (
	"context"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/turn"
)

// session is the one turn of a command: run and exec make one call in it, turn a
// batch.
type session struct {
	*app
	tools map[string]turn.Tool
	calls []turn.Call
	spec  turn.Spec
	// single is set for run and exec, which report their one call when it is
	// over.
	single bool
	// passes: the call's own output goes to the terminal as it comes, and lines
	// of ours would be in its way.
	passes bool
}

// run gives the results, one for each call. An error beside results says that
// the turn is not wholly on record.
func (s *session) run() (results []*api.Result, err error) {
	s.flags.warnUnsafe()
	kept, err := s.flags.journal.open(journal.Options{})
	if err != nil {
		return nil, err
	}
	if kept != nil {
		defer func() {
			if closeErr := kept.Close(); err == nil && closeErr != nil {
				err = hostError(closeErr)
			}
		}()
	}
	view := present.NewView(os.Stderr, present.Options{Live: !s.passes && s.flags.live(), Single: s.single})
	defer view.Close()
	s.view.Store(view)
	asks := s.flags.interactor(view)
	if asks != nil {
		defer asks.Close()
	}
	t, err := s.begin(kept, asks)
	if err != nil {
		return nil, hostError(err)
	}
	defer t.End()
	if asks != nil {
		asks.Interrupted = func() { t.Abort(api.ReasonUser) } // before the denial is heard
	}
	defer abortOnSignal(t)()
	shown := s.show(t, view)
	if results, err = t.Run(context.Background(), s.calls); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	t.End()
	<-shown
	if err := t.JournalError(); err != nil {
		return results, hostError(fmt.Errorf("the turn is not wholly on record: %w", err))
	}
	return results, nil
}

func (s *session) begin(kept *journal.Journal, asks *terminal.Interactor) (*turn.Turn, error) {
	config := s.turns(kept)
	config.NoStatus, config.Tool, config.Health = s.single, s.tool, func() any { return s.host.Health() }
	if kept == nil && !s.flags.events {
		config.EventOutputBytes = -1 // nobody reads it
	}
	s.spec.Headless = asks == nil
	if asks != nil {
		config.Interactor = asks
	}
	return turn.New(config).Begin(s.spec)
}

// tool is one of the session's own, or else of the configuration.
func (s *session) tool(name string) (turn.Tool, bool) {
	if own, ok := s.tools[name]; ok {
		return own, true
	}
	return s.catalog.Offered(name)
}

// interactor asks on the terminal; nil if nobody can be asked.
func (f *callFlags) interactor(view *present.View) *terminal.Interactor {
	if f.headless {
		return nil
	}
	asks, err := terminal.Open()
	if err != nil {
		return nil
	}
	asks.Screen = view
	return asks
}

// abortOnSignal makes the first signal the kill ladder, the second a kill, and
// the third an end without an answer, should nobody take that: what still runs
// dies with this process.
func abortOnSignal(t *turn.Turn) (release func()) {
	return onSignals(func(n int) {
		if n > 2 {
			os.Exit(exit.Aborted)
		}
		go t.Abort(api.ReasonUser)
	})
}

// show shows what happens until the turn is over.
func (s *session) show(t *turn.Turn, view *present.View) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range t.Events(context.Background(), 0) {
			s.showRecord(view, r)
		}
	}()
	return done
}

func (s *session) showRecord(view *present.View, r *turn.Record) {
	view.Take(r.Event)
	s.showEvent(view, present.EventJSON(r.Record))
	if f := s.flags; !s.single && !f.events && !f.quiet && !f.json {
		view.Print(line(r))
	}
}

// line is what is printed of an event: the ends of calls, and that some may be
// missing.
func line(r *turn.Record) string {
	switch e := r.Event; {
	case r.Gap != nil:
		return fmt.Sprintf("toolhost: events %d to %d are missing here\n", r.Gap.From, r.Gap.To)
	case r.Result != nil:
		return terminal.OneLine(e.CallID) + "  " + present.Outcome(r.Result)
	case e.Status != "" && (e.Kind == api.EventFinished || e.Kind == api.EventFailed): // from the journal
		return terminal.OneLine(fmt.Sprintf("%s  %s: %s", e.CallID, e.Status, e.Tool)) + "\n"
	}
	return ""
}

// showEvent prints an event, waiting for the screen: what nobody reads is not
// gathered here.
func (s *session) showEvent(view *present.View, raw []byte) {
	if s.flags.events {
		view.Lock()
		defer view.Unlock()
		_ = present.Raw(os.Stderr, raw)
	}
}
