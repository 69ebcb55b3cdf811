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

// ErrDenied is wrapped by the error of Ask if the human said no, or nobody
// answered in time.
var ErrDenied = errors.New("denied")

// DeniedError is the error of Ask that wraps ErrDenied, with the reason.
type DeniedError struct {
	// Reason is given by the host: user, timeout, headless, ...
	Reason string
	// TimedOut is set if nobody answered in time.
	TimedOut bool
}

func (e *DeniedError) Error() string { return ErrDenied.Error() + ": " + e.Reason }
func (e *DeniedError) Unwrap() error { return ErrDenied }

// Question is a tool's question to a human during a call.
type Question struct {
	// Prompt is shown to the human.
	Prompt string
	// Schema is the JSON Schema of the answer; empty asks for yes or no.
	Schema json.RawMessage
	// Timeout bounds the wait; zero means the host's default. The clock of the
	// call's timeout stops during the wait.
	Timeout time.Duration
	// Secret is set if the answer is a credential.
	Secret bool
	// Requests, used by adapters instead of Prompt and Schema, are the requests of a
	// server to its client, by the server's keys. The answer is an object with the
	// results by these keys; keys without a result are missing.
	Requests map[string]ClientRequest
}

// Ask asks a human a question and waits for the answer, a JSON value (true for a
// plain yes). The error is a *DeniedError, which wraps ErrDenied, if there is no
// answer, or ctx's cause if ctx ends. In that case the question stays open at the host,
// and the clock of the call's timeout stays stopped until it is answered. Ask fails if
// 8 questions of the call are already open, or Schema is not JSON.
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

// answer passes an answer to its Ask. That may have given up, but for the host the
// question was open until now.
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

// deliver reports whether the question was open; other answers are dropped.
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
