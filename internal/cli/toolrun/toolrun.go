// Package toolrun calls a tool for its author, who wants to see everything: the
// content as it comes, progress, logs, what was printed, panics with their
// stacks, and where the time went.
package toolrun

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Options say how a call is shown.
type Options struct {
	// Out takes content and result, Err everything else.
	Out, Err io.Writer
	// People: Out is a terminal, which must see no control characters.
	People bool
	// JSON: Out takes the whole result as JSON, alone, and Err nothing.
	JSON bool
	// Answers are given to the tool's questions, in this order; when all
	// are used, nobody is there.
	Answers []json.RawMessage
	// Signals abort the call: the first begins the kill ladder, the second kills
	// at once.
	Signals <-chan os.Signal
}

// eventBuffer is how many events wait before some are missed, which is said.
const eventBuffer = 4096

// Call makes one call and shows it. Aborted says that a signal ended it.
func Call(ctx context.Context, host *supervisor.Supervisor, request supervisor.Request, o Options) (result *api.Result, aborted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan api.Event, eventBuffer)
	request.Ask = (&script{answers: o.Answers}).ask
	s := &screen{o: o}
	if !o.JSON {
		request.Events, request.EventOutputBytes = events, math.MaxInt64
		s.begin(request)
	}
	started := make(chan *supervisor.Call, 1)
	go func() { started <- host.Start(ctx, request) }()
	call := (*supervisor.Call)(nil)
	for call == nil {
		select {
		case call = <-started:
		case <-o.Signals:
			aborted = true
			cancel()
		}
	}
	var shown sync.WaitGroup
	if !o.JSON {
		shown.Go(func() { s.show(events, call.Done()) })
	}
	aborted = abortOn(call, o.Signals) || aborted
	shown.Wait()
	result = call.Result()
	if o.JSON {
		return result, aborted, printJSON(o.Out, result)
	}
	return result, aborted, s.finish(result)
}

// abortOn waits for the call.
func abortOn(call *supervisor.Call, signals <-chan os.Signal) (aborted bool) {
	for {
		select {
		case <-signals:
			aborted = true
			call.Abort(api.ReasonUser)
		case <-call.Done():
			return aborted
		}
	}
}

func printJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(value)
}

// script gives the answers that its author has thought of.
type script struct {
	mu      sync.Mutex
	answers []json.RawMessage
}

func (s *script) ask(context.Context, supervisor.Question) supervisor.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 {
		return supervisor.Answer{Denied: "headless"}
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return supervisor.Answer{Value: next}
}
