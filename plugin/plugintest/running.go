package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/plugin/internal/inprocess"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Running is a call that has been started. Cancel may be called from any
// goroutine; what may fail the test, only from the test's own.
type Running struct {
	t      testing.TB
	host   Host
	tool   *pluginv1.ToolDescription
	server inprocess.Server
	done   chan struct{} // closed when the tool has returned

	cancelOnce sync.Once
	cancelled  chan struct{} // closed by the first Cancel

	mu       sync.Mutex
	result   Result
	answers  []Answer
	problems []string      // what the test fails of, once its goroutine is here
	changed  chan struct{} // closed and replaced with each event
}

// start runs the call on a goroutine that the test waits for when it ends.
func (r *Running) start(request *pluginv1.CallRequest) {
	ctx, hangUp := context.WithCancel(r.t.Context())
	go func() {
		defer close(r.done)
		if err := r.server.Call(request, &stream{ctx: ctx, running: r}); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.problems = append(r.problems, fmt.Sprintf("the call broke: %v", err))
		}
	}()
	r.t.Cleanup(func() {
		hangUp()
		gone := time.NewTimer(r.host.Grace)
		defer gone.Stop()
		select {
		case <-r.done:
		case <-gone.C: // Result has said so, or the test did not want to know
		}
	})
}

// Cancel asks the tool to end, as a host does when a call is aborted: the
// tool's context ends with plugin.ErrCancelled. What it returns still counts.
func (r *Running) Cancel(reason string) {
	r.cancelOnce.Do(func() {
		close(r.cancelled)
		go r.cancelUntilDone(reason)
	})
}

// cancelUntilDone asks again, for a tool knows nothing of a call that has just
// been started and not arrived. Only the first one counts.
func (r *Running) cancelUntilDone(reason string) {
	for {
		_, _ = r.server.Cancel(context.Background(), &pluginv1.CancelRequest{CallId: callID, Reason: reason})
		select {
		case <-r.done:
			return
		case <-time.After(cancelEvery):
		}
	}
}

const cancelEvery = time.Millisecond

// Await waits until the tool has sent enough: enough is called with what there
// is by then, at first and after each message. The test fails if the tool
// returns before.
func (r *Running) Await(enough func(*Result) bool) {
	r.t.Helper()
	for {
		r.mu.Lock()
		changed, snapshot := r.changed, r.result
		r.mu.Unlock()
		if enough(&snapshot) {
			return
		}
		select {
		case <-changed:
		case <-r.done:
			r.mu.Lock()
			snapshot = r.result
			r.mu.Unlock()
			if !enough(&snapshot) {
				r.t.Fatalf("plugintest: %s returned before it had sent what the test waits for; it sent %s", r.tool.GetName(), snapshot.summary())
			}
			return
		}
	}
}

// Result waits for the tool's end, at most its timeout and the grace period,
// and fails the test where the tool broke its contract.
func (r *Running) Result() *Result {
	r.t.Helper()
	if !r.wait() {
		r.t.Fatalf("plugintest: %s still runs %s after it was told to end: a host would kill it; let it heed its context", r.tool.GetName(), r.host.Grace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range r.problems {
		r.t.Errorf("plugintest: %s: %s", r.tool.GetName(), problem)
	}
	r.problems = nil
	if n := len(r.answers); n > 0 && r.result.Error == nil {
		r.t.Errorf("plugintest: %s did not ask for the last %d of %d answers", r.tool.GetName(), n, len(r.host.Answers))
		r.answers = nil
	}
	r.result.tool = r.tool.GetName()
	result := r.result
	return &result
}

// wait is false if the tool outlived its grace period.
func (r *Running) wait() bool {
	timeout := time.NewTimer(r.host.Timeout)
	defer timeout.Stop()
	select {
	case <-r.done:
		return true
	case <-r.cancelled:
	case <-timeout.C:
	}
	grace := time.NewTimer(r.host.Grace)
	defer grace.Stop()
	select {
	case <-r.done:
		return true
	case <-grace.C:
		return false
	}
}

// refusal says why a host would not even begin the call.
func (r *Running) refusal(arguments []byte) string {
	var object map[string]any
	if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
		return "the arguments must be a JSON object"
	}
	if err := validate(r.tool.GetInputSchema(), object); err != nil {
		return fmt.Sprintf("arguments of %s: %v", r.tool.GetName(), err)
	}
	return ""
}

// stream is the tool's side of a call without a network.
type stream struct {
	ctx     context.Context
	running *Running
}

func (s *stream) Context() context.Context { return s.ctx }

// Send takes one event. Replies are given at once: the tool waits for them
// behind this call.
func (s *stream) Send(event *pluginv1.CallEvent) error {
	if _, err := proto.Marshal(event); err != nil {
		return err
	}
	r, event := s.running, proto.CloneOf(event) // the tool may use its buffers again
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.add(event)
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Flush:
		_, _ = r.server.Acknowledge(s.ctx, &pluginv1.AcknowledgeRequest{CallId: callID, Seq: event.GetSeq()})
	case *pluginv1.CallEvent_Ask:
		_, _ = r.server.Answer(s.ctx, r.answer(e.Ask))
	case *pluginv1.CallEvent_Result:
		r.check(e.Result)
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// answer takes the next answer of the script.
func (r *Running) answer(ask *pluginv1.Ask) *pluginv1.AnswerRequest {
	reply := &pluginv1.AnswerRequest{CallId: callID, InteractionId: ask.GetInteractionId()}
	if len(r.answers) == 0 {
		r.problems = append(r.problems, fmt.Sprintf("it asks %q and the test has no answer: give one in Host.Answers", ask.GetPrompt()))
		reply.Outcome, reply.Reason = pluginv1.AnswerRequest_OUTCOME_DENIED, "headless"
		return reply
	}
	next := r.answers[0]
	r.answers = r.answers[1:]
	switch {
	case next.Denied == "timeout":
		reply.Outcome, reply.Reason = pluginv1.AnswerRequest_OUTCOME_TIMED_OUT, next.Denied
	case next.Denied != "":
		reply.Outcome, reply.Reason = pluginv1.AnswerRequest_OUTCOME_DENIED, next.Denied
	default:
		reply.Outcome, reply.Value = pluginv1.AnswerRequest_OUTCOME_ANSWERED, r.encodeAnswer(ask, next.Value)
	}
	return reply
}

func (r *Running) encodeAnswer(ask *pluginv1.Ask, value any) []byte {
	raw, err := json.Marshal(value)
	if err == nil && len(ask.GetSchema()) > 0 {
		err = validateJSON(ask.GetSchema(), raw)
	}
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("the test's answer to %q does not match its schema: %v", ask.GetPrompt(), err))
	}
	return raw
}

// check holds a success to the tool's own output schema.
func (r *Running) check(result *pluginv1.Result) {
	schema := r.tool.GetOutputSchema()
	if result.GetError() != nil || result.GetExit() != nil || len(schema) == 0 {
		return
	}
	if err := validateJSON(schema, result.GetStructured()); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("its structured result %s does not satisfy its output schema: %v", result.GetStructured(), err))
	}
}

// summary is a short account of what has come.
func (r *Result) summary() string {
	parts := []string{fmt.Sprintf("%d pieces of content", len(r.Content)), fmt.Sprintf("%d of progress", len(r.Progress))}
	if r.Error != nil {
		parts = append(parts, "the error "+r.Error.Error())
	}
	return strings.Join(parts, ", ")
}
