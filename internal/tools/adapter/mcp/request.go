package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/plugin"
)

// Requests that hosts may make beside calls of tools.
const (
	getPrompt    = "prompts/get"
	readResource = "resources/read"
	subscribe    = "resources/subscribe"
	unsubscribe  = "resources/unsubscribe"
	rootsChanged = "notifications/roots/list_changed"
)

var taken = []string{getPrompt, readResource, "completion/complete", subscribe, unsubscribe, rootsChanged}

// Request implements plugin.Requester.
func (a *adapter) Request(ctx context.Context, method string, raw json.RawMessage, out *plugin.Output) (json.RawMessage, error) {
	if !slices.Contains(taken, method) {
		return nil, fmt.Errorf("a request of method %q is not taken: want one of %q", method, taken)
	}
	var p params
	if err := json.Unmarshal(raw, &p); err != nil || p == nil {
		return nil, &plugin.InvalidArgumentsError{Err: fmt.Errorf("the parameters of %s are not an object", method)}
	}
	if method == rootsChanged {
		a.tellRoots()
		return json.RawMessage("{}"), nil
	}
	a.hearing.begin()
	defer a.hearing.endCall()
	for attempt := 1; ; attempt++ {
		s, err := a.session(ctx)
		if err != nil {
			return nil, err
		}
		result, asked, err := s.request(ctx, method, p, out)
		if err == nil || asked || attempt == 2 || ctx.Err() != nil {
			return result, err
		}
	}
}

// tellRoots tells servers that run that the client has other roots; it starts none.
// Since 2026-07-28 they are asked for anew each time.
func (a *adapter) tellRoots() {
	for _, s := range a.living() {
		select {
		case <-s.ready:
			if !s.stateless() {
				_ = s.wire.notify(rootsChanged, params{})
			}
		default:
		}
	}
}

func (s *session) request(ctx context.Context, method string, p params, out *plugin.Output) (json.RawMessage, bool, error) {
	if s.stateless() && (method == subscribe || method == unsubscribe) {
		return s.listen(ctx, method, p)
	}
	c, result, asked, err := s.call(ctx, method, p, out)
	switch {
	case err != nil || result == nil:
		return nil, asked, err
	case method == readResource:
		result, err = s.contents(result, c.mended, out)
	case len(result) > maxPartBytes:
		err = fmt.Errorf("MCP server %q answered %s with %d bytes, at most %d can be passed on", s.options.Name, method, len(result), maxPartBytes)
	}
	return result, true, err
}

// contents sends those of a resource as content, where they count as output, and
// returns the rest of the result.
func (s *session) contents(result json.RawMessage, mended int, out *plugin.Output) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(result, &fields) != nil || json.Unmarshal(fields["contents"], &list) != nil {
		return nil, s.failure(plugin.BrokeProtocol, "answered resources/read in a form that MCP does not have", nil)
	}
	d := &delivery{out: out}
	for _, one := range list {
		wrapped := append(append([]byte(`{"type":"resource","resource":`), one...), '}')
		if err := d.part(wrapped); err != nil {
			return nil, err
		}
	}
	if err := d.end(mended); err != nil {
		return nil, err
	}
	delete(fields, "contents")
	return json.Marshal(fields)
}
