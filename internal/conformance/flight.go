package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// flight is a call under way. What the owner may read of outcome while it
// flies is behind mu.
type flight struct {
	child *child
	id    string
	begun chan struct{} // closed with the first event
	done  chan struct{} // closed when the stream has ended
	began time.Time

	mu      sync.Mutex
	outcome outcome
}

// outcome is what has come of a call.
type outcome struct {
	result   *pluginv1.Result
	err      error // how the stream ended; nil if as it should
	timedOut bool
	took     time.Duration
	// bytes are those of all content, text the beginning of its text.
	bytes int64
	text  string
	// flushed: a Flush was sent. stuck: it was the last thing to be sent.
	flushed, stuck bool
	// ended is how the process ended, if the connection was lost.
	ended string
}

// flightOptions say how to play the host.
type flightOptions struct {
	// deaf: no Flush is acknowledged.
	deaf bool
	// onEvent is called with each event and holds the tool back meanwhile.
	onEvent func(*pluginv1.CallEvent)
}

// take starts a call.
func (c *child) take(ctx context.Context, request *pluginv1.CallRequest, o flightOptions) *flight {
	f := &flight{child: c, id: request.GetCallId(), begun: make(chan struct{}), done: make(chan struct{}), began: time.Now()}
	first := sync.OnceFunc(func() { close(f.begun) })
	go func() {
		defer close(f.done)
		err := c.conn.Call(ctx, request, func(event *pluginv1.CallEvent, _ time.Time) {
			f.note(event)
			first()
			if event.GetFlush() != nil && !o.deaf {
				go func() { _ = c.conn.Acknowledge(ctx, f.id, event.GetSeq()) }()
			}
			if o.onEvent != nil {
				o.onEvent(event)
			}
		})
		took, ended := time.Since(f.began), ""
		if errors.Is(err, host.ErrDisconnected) {
			ended = c.endedSoon()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outcome.err, f.outcome.took, f.outcome.ended = err, took, ended
	}()
	return f
}

func (f *flight) note(event *pluginv1.CallEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := &f.outcome
	o.stuck = false
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Content:
		o.count(e.Content)
	case *pluginv1.CallEvent_Flush:
		o.flushed, o.stuck = true, true
	case *pluginv1.CallEvent_Result:
		o.result = e.Result
		for _, content := range e.Result.GetContent() {
			o.count(content)
		}
	case *pluginv1.CallEvent_Ask: // nobody is there
		go func() {
			_ = f.child.conn.Answer(context.Background(), &pluginv1.AnswerRequest{
				CallId: f.id, InteractionId: e.Ask.GetInteractionId(), Outcome: pluginv1.AnswerRequest_OUTCOME_DENIED, Reason: api.OutcomeHeadless,
			})
		}()
	}
}

func (o *outcome) count(content *pluginv1.Content) {
	o.bytes += int64(len(content.GetText()) + len(content.GetJson()) + len(content.GetBlob().GetData()))
	if room := maxKeptOutput - len(o.text); room > 0 {
		text := content.GetText()
		o.text += text[:min(room, len(text))]
	}
}

// wait gives the call a time to end.
func (f *flight) wait(limit time.Duration) outcome {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	timedOut := false
	select {
	case <-f.done:
	case <-timer.C:
		timedOut = true
	}
	o := f.now()
	o.timedOut = timedOut
	return o
}

// over: the stream has ended.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// now is what has come so far.
func (f *flight) now() outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcome
}

// call runs a call to its end, or to the limit.
func (c *child) call(ctx context.Context, request *pluginv1.CallRequest, limit time.Duration) outcome {
	return c.take(ctx, request, flightOptions{}).wait(limit)
}

// request is a call as a host makes it, with time to spare.
func (b *bench) request(id string, c call) *pluginv1.CallRequest {
	return &pluginv1.CallRequest{
		CallId: id, Tool: b.job.Tool, Arguments: []byte(c.Arguments),
		TimeoutNs: int64(time.Hour), SoftBudgetNs: int64(10 * time.Second),
	}
}

func (o *outcome) crashed() bool { return errors.Is(o.err, host.ErrDisconnected) && o.ended != "" }

// succeeded: there is a result, and it is not a failure.
func (o *outcome) succeeded() bool {
	exit := o.result.GetExit()
	return o.result != nil && o.result.GetError() == nil && exit.GetCode() == 0 && exit.GetSignal() == ""
}

// problem says how the stream broke the protocol; "" if it did not.
func (o *outcome) problem() string {
	switch {
	case o.crashed():
		return "the process ended before its result: " + o.ended
	case o.err != nil:
		return strings.TrimPrefix(o.err.Error(), "protocol error: ")
	}
	return ""
}

const streamFix = "number a call's events from 1 by 1, send exactly one Result as the last, then end the stream with status OK"

// fix is what to mend where there is a problem.
func (o *outcome) fix() string {
	problem := o.problem()
	switch {
	case o.crashed() && strings.HasPrefix(o.ended, "exit status 0"):
		return "send a Result before the process exits, and go on serving: the host ends the process when it has no more calls for it"
	case o.crashed():
		return "find what ended the process, by what it wrote to stderr (toolsdk run shows all of it), and answer what fails with a Result that has an error"
	case strings.HasPrefix(problem, "an ask's schema"):
		return "send with an Ask a JSON Schema that is valid JSON, or none for a plain yes or no"
	case strings.HasSuffix(problem, "is not valid JSON"), strings.HasSuffix(problem, "is empty"):
		return "encode it as JSON: one whole value, without anything after it"
	case strings.HasPrefix(problem, "a message is too large"):
		return "keep each message under 4 MiB: send content in several parts, or write it to a file and send a link"
	}
	return streamFix
}

// summary is the outcome in a few words.
func (o *outcome) summary() string {
	switch {
	case o.timedOut:
		return "still running"
	case o.problem() != "":
		return o.problem()
	case o.result.GetError() != nil:
		return fmt.Sprintf("error %q", excerpt(firstLine(o.result.GetError().GetMessage())))
	case !o.succeeded():
		return "a command that failed"
	}
	return "ok"
}

func firstLine(s string) string { return text.FirstLine(s) }
