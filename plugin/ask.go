package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// ErrDenied is returned by Ask when the human said no, or nobody could be
// asked in time.
var ErrDenied = errors.New("denied")

// DeniedError is the ErrDenied that Ask returns, with what is known of why.
type DeniedError struct {
	// Reason is the host's: user, timeout, headless, ...
	Reason string
	// TimedOut: nobody answered in time.
	TimedOut bool
}

func (e *DeniedError) Error() string { return ErrDenied.Error() + ": " + e.Reason }
func (e *DeniedError) Unwrap() error { return ErrDenied }

// Question is what a tool asks a human in the middle of a call.
type Question struct {
	// Prompt is shown to the human.
	Prompt string
	// Schema is the JSON Schema of the value wanted; empty asks for yes or no.
	Schema json.RawMessage
	// Timeout bounds the wait; zero takes the host's default. The call's own
	// timeout stands still meanwhile.
	Timeout time.Duration
	// Secret: the answer is a credential.
	Secret bool
	// Requests are, for adapters and in place of Prompt and Schema, what a server asks
	// of its client, by keys of its own. The answer is an object with the results
	// by these keys; it lacks those that nobody gave.
	Requests map[string]ClientRequest
}

// Ask puts a question to a human and waits for the answer, a JSON value (true
// for a plain yes). It returns a *DeniedError, which is an ErrDenied, or
// ctx's cause; the question then stays with the host, and the call's timeout stands still
// until it is answered there. At most 8 questions of a call may wait at once: one more is an
// error, as is a Schema that is not JSON.
func (o *Output) Ask(ctx context.Context, q Question) (json.RawMessage, error) {
	value, _, err := o.AskBeside(ctx, q)
	return value, err
}

// AskBeside is Ask for adapters: meta is what an MCP client has said beside its answer, a JSON
// object, also where that is a *DeniedError; empty if nothing.
func (o *Output) AskBeside(ctx context.Context, q Question) (value, meta json.RawMessage, err error) {
	if len(q.Schema) > 0 && !(json.Valid(q.Schema) && utf8.Valid(q.Schema)) {
		return nil, nil, fmt.Errorf("cannot ask %q: its Schema is not JSON in UTF-8: correct it, or leave it out for a yes or no", cut(printable(q.Prompt), maxQuoted))
	}
	id, answer, err := o.answers.expect()
	if err != nil {
		return nil, nil, err
	}
	ask := &pluginv1.Ask{
		InteractionId: id, Prompt: printable(q.Prompt), Schema: q.Schema,
		TimeoutMs: max(q.Timeout.Milliseconds(), min(int64(q.Timeout), 1)), Secret: q.Secret,
	}
	for key, request := range q.Requests {
		if ask.Requests == nil {
			ask.Requests = map[string]*pluginv1.ClientRequest{}
		}
		ask.Requests[key] = &pluginv1.ClientRequest{Method: request.Method, Params: request.Params}
	}
	if o.clock != nil {
		o.clock.pause() // before the answer may come
	}
	if _, err := o.emit(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Ask{Ask: ask}}); err != nil {
		o.answer(&pluginv1.AnswerRequest{InteractionId: id})
		return nil, nil, err
	}
	select {
	case a := <-answer:
		if a.GetOutcome() != pluginv1.AnswerRequest_OUTCOME_ANSWERED {
			return nil, a.GetMeta(), &DeniedError{Reason: a.GetReason(), TimedOut: a.GetOutcome() == pluginv1.AnswerRequest_OUTCOME_TIMED_OUT}
		}
		return a.GetValue(), a.GetMeta(), nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// answer hands an answer to its asker, who may have given up: for the host the question
// waited until now.
func (o *Output) answer(a *pluginv1.AnswerRequest) {
	if o.answers.deliver(a) && o.clock != nil {
		o.clock.resume()
	}
}

// maxQuoted is how much of a prompt an error quotes.
const maxQuoted = 64

// answers are the questions of a call that the host has not answered yet.
type answers struct {
	mu      sync.Mutex
	last    int
	pending map[string]chan *pluginv1.AnswerRequest
}

func newAnswers() *answers {
	return &answers{pending: map[string]chan *pluginv1.AnswerRequest{}}
}

func (a *answers) expect() (string, <-chan *pluginv1.AnswerRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) == handshake.MaxQuestions {
		return "", nil, fmt.Errorf("%d questions of the call wait for an answer, which is the most: wait for one of them first", len(a.pending))
	}
	a.last++
	id := "ask-" + strconv.Itoa(a.last)
	ch := make(chan *pluginv1.AnswerRequest, 1)
	a.pending[id] = ch
	return id, ch, nil
}

// deliver says whether the question waited; a second answer, or a stranger's, is dropped.
func (a *answers) deliver(answer *pluginv1.AnswerRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch, waits := a.pending[answer.GetInteractionId()]
	if waits {
		delete(a.pending, answer.GetInteractionId())
		ch <- answer
	}
	return waits
}
