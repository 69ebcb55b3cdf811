package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

// dialect is what differs between the model APIs, beside what package format
// knows. The entries of a history are the API's own: messages or, of the
// Responses API, items.
type dialect interface {
	// defaultURL is the API's own; path follows it, or any other base URL.
	defaultURL() string
	path() string
	// keyVariable names the environment variable with the key.
	keyVariable() string
	authorize(h http.Header, key string)
	// body asks for the model's next response, as a stream.
	body(model string, tools json.RawMessage, history []json.RawMessage) any
	// newReply gathers that response; text gets the model's words as they come.
	newReply(text func(string)) reply
	// said is what keeps a response in the history.
	said(response json.RawMessage) ([]json.RawMessage, error)
	// answers is what format.Provider.Results wrote, as entries.
	answers(results json.RawMessage) ([]json.RawMessage, error)
}

// reply is a response that is coming in.
type reply interface {
	// take reads the data of one event; done says that no other is needed.
	take(data []byte) (done bool, err error)
	// whole is the response as it would be without streaming, or an error if
	// it is not all there.
	whole() (json.RawMessage, error)
}

var dialects = map[string]dialect{"anthropic": anthropic{}, "openai": responses{}, "openai-chat": chat{}}

// agent is a conversation.
type agent struct {
	client   *client
	provider format.Provider
	// run runs a batch of calls, as turn.Turn.Run does.
	run       func(context.Context, []turn.Call) ([]*api.Result, error)
	maxRounds int
	history   []json.RawMessage
	rounds    int
}

// talk goes on until the model has nothing more to do, or ctx ends; its cause is the
// error then. The history is valid at every return: another prompt may follow.
func (a *agent) talk(ctx context.Context, prompt string) error {
	message, err := json.Marshal(map[string]string{"role": "user", "content": prompt})
	if err != nil {
		return fmt.Errorf("bug: cannot encode the prompt: %w", err)
	}
	a.history = append(a.history, message) // of the same shape in all APIs
	for range a.maxRounds {
		a.rounds++
		over, err := a.round(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if over || err != nil {
			return err
		}
	}
	return fmt.Errorf("the model has more to do after %d rounds: give it more with --max-rounds", a.maxRounds)
}

// round has the model respond and its calls run. The history gets the response
// together with the results of all of its calls, or nothing: APIs refuse a call
// without a result. An abort changes nothing in this, as turn.Turn.Run has a
// result for every call, whatever happens.
func (a *agent) round(ctx context.Context) (over bool, err error) {
	response, err := a.client.ask(ctx, a.history)
	if err != nil {
		return false, err
	}
	calls, err := a.provider.Calls(response)
	if err != nil {
		return false, err
	}
	entries, err := a.client.api.said(response)
	if err != nil {
		return false, fmt.Errorf("cannot keep the response: %w", err)
	}
	if len(calls) > 0 {
		answers, err := a.answer(ctx, calls)
		if err != nil {
			return false, err
		}
		entries = slices.Concat(entries, answers)
	}
	a.history = append(a.history, entries...)
	if len(calls) > 0 {
		return false, nil
	}
	return lastWord(response)
}

// lastWord says whether a response without calls is the model's last, or one
// after which it goes on as soon as it is asked again. An error says why it is
// not all that the model would have said. (A call that is cut is told to the
// model, as its result.)
func lastWord(response json.RawMessage) (over bool, err error) {
	var r struct {
		StopReason        string                  `json:"stop_reason"`        // Anthropic
		IncompleteDetails struct{ Reason string } `json:"incomplete_details"` // Responses
		Choices           []chatChoice            `json:"choices"`            // Chat Completions
	}
	if err := json.Unmarshal(response, &r); err != nil {
		return false, fmt.Errorf("cannot tell whether the response is complete: %w", err)
	}
	reason := cmp.Or(r.StopReason, r.IncompleteDetails.Reason)
	if len(r.Choices) > 0 {
		reason = r.Choices[0].FinishReason
	}
	switch reason {
	case "pause_turn": // Anthropic's, in the middle of what its own tools do
		return false, nil
	case "max_tokens", "model_context_window_exceeded", "refusal", "max_output_tokens", "length", "content_filter":
		return true, fmt.Errorf("the model's answer is not complete: it ended for the reason %s", reason)
	}
	return true, nil
}

// answer runs calls and writes down their results. A turn wants ids of its own
// for all of its calls, and short ones; some servers count theirs anew in each
// response, or make them long. So each is known by its round and its number.
func (a *agent) answer(ctx context.Context, calls []format.Call) ([]json.RawMessage, error) {
	batch := make([]turn.Call, len(calls))
	for i, c := range calls {
		batch[i] = turn.Call{ID: fmt.Sprintf("%d.%d", a.rounds, i+1), Tool: c.Tool, Arguments: c.Arguments, Meta: c.Meta, Problem: c.Problem}
	}
	results, err := a.run(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("cannot run the calls: %w", err)
	}
	raw, err := a.provider.Results(calls, results)
	if err != nil {
		return nil, err
	}
	return a.client.api.answers(raw)
}
