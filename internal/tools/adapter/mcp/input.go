package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/plugin"
)

// input is what a server of the newest protocol asks for instead of an answer.
type input struct {
	InputRequests map[string]clientRequest
	RequestState  string
}

type clientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// wanted is nil for a result that is one.
func wanted(result map[string]json.RawMessage) *input {
	var in input
	var kind string
	if json.Unmarshal(result["resultType"], &kind) != nil || kind != "input_required" {
		return nil
	}
	for name, into := range map[string]any{"inputRequests": &in.InputRequests, "requestState": &in.RequestState} {
		if raw := result[name]; raw != nil && json.Unmarshal(raw, into) != nil {
			return nil
		}
	}
	return &in
}

// mayAsk are the requests that a server may answer by asking for something.
var mayAsk = []string{callTool, getPrompt, readResource}

// wrong says why nobody can be asked for this in answer to a request; empty if somebody can.
func (in *input) wrong(method string) string {
	if !slices.Contains(mayAsk, method) {
		return fmt.Sprintf("answered %s by asking for input (input_required), as only %s may be answered", text.Begin(method, 100), strings.Join(mayAsk, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(in.InputRequests)) {
		if err := in.InputRequests[key].fits(); err != nil {
			return fmt.Sprintf("asked for input that cannot be passed on: inputRequests.%s.%v", text.Begin(key, 100), err)
		}
	}
	return ""
}

// fits says why it is not a request that clients answer.
func (r clientRequest) fits() error {
	switch r.Method {
	case methodElicit:
		return elicitationFits(r.Params)
	case methodSample:
		return sampleFits(r.Params)
	case methodRoots:
		return nil
	}
	return fmt.Errorf("method must be %s, %s or %s, not %q", methodElicit, methodSample, methodRoots, text.Begin(r.Method, 100))
}

// elicitationFits says why params are not those of a question to a human.
func elicitationFits(raw json.RawMessage) error {
	if !isObject(raw) {
		return errors.New("params must be an object")
	}
	var p elicitation
	err := json.Unmarshal(raw, &p)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("params.%s cannot be a %s", wrong.Field, wrong.Value)
	}
	if len(p.Message) > maxPromptBytes || len(p.RequestedSchema) > maxQuestionSchema {
		return fmt.Errorf("params are too large: message may have %d bytes, and requestedSchema %d", maxPromptBytes, maxQuestionSchema)
	}
	return err
}

// idleRound is how long a server that asks for nothing, and wants to be asked
// again, is left alone, longer each time.
const idleRound = 100 * time.Millisecond

// gather asks the host for what a server wants, by the server's keys.
func (s *session) gather(c *call, in *input, round int) (map[string]json.RawMessage, error) {
	if len(in.InputRequests) == 0 {
		select {
		case <-time.After(time.Duration(round) * idleRound):
			return nil, nil
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	}
	q := plugin.Question{Requests: map[string]plugin.ClientRequest{}}
	for key, one := range in.InputRequests {
		q.Requests[key] = plugin.ClientRequest{Method: one.Method, Params: one.Params}
	}
	given, err := s.askAll(c.ctx, c, q)
	if err != nil {
		return nil, err
	}
	for key, one := range in.InputRequests {
		if e := refusedIn(given[key]); e != nil {
			return nil, fmt.Errorf("MCP server %q asked for %s, and the client of this call has refused that: %s (code %d)", s.options.Name, one.Method, textOf(e), e.Code)
		}
		if given[key] == nil && one.Method != methodElicit {
			return nil, fmt.Errorf("MCP server %q asked for %s, and the client of this call cannot give that", s.options.Name, one.Method)
		}
	}
	return given, nil
}

// askAll asks for several things at once. Roots are cut to the grants; a form that
// nobody has filled in is answered with why.
func (s *session) askAll(ctx context.Context, c *call, q plugin.Question) (map[string]json.RawMessage, error) {
	raw, _, err := c.ask(ctx, q)
	if err != nil && c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	given := map[string]json.RawMessage{}
	if err == nil && json.Unmarshal(raw, &given) != nil {
		return nil, fmt.Errorf("MCP server %q gets no answer: the host's is not an object", s.options.Name)
	}
	for key, one := range q.Requests {
		switch {
		case one.Method == methodRoots:
			given[key] = s.options.granted(given[key])
		case one.Method == methodElicit && given[key] == nil:
			given[key] = json.RawMessage(`{"action":"` + action(err) + `"}`)
		}
	}
	return given, nil
}
