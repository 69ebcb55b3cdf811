package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// reply is what a request is answered with: a result, or what is asked for.
type reply struct {
	result *api.Result
	output outputCheck
	notes  []string
	asks   *inputs
}

// inputs are what a request of 2026-07-28 is to come back with.
type inputs struct {
	requests mcpsdk.InputRequestMap
	keys     []string // in the order in which the server asks
	state    string
}

// in has a result written with the requests in their order, which the SDK's map has not.
func (i *inputs) in(result mcpsdk.Result) error {
	raw, err := json.Marshal(i.requests)
	if err != nil {
		return fmt.Errorf("cannot write the question: %w", err)
	}
	fields := object.Of(raw)
	ordered := []byte("{")
	for n, key := range i.keys {
		if n > 0 {
			ordered = append(ordered, ',')
		}
		name, _ := json.Marshal(key) // text always can be
		one := fields[key]
		//lint:ignore SA1019 clients may still have a model
		if p, is := i.requests[key].(*mcpsdk.CreateMessageWithToolsParams); is {
			one = object.With(one, "params", p.Meta[exactKey])
		}
		ordered = append(append(append(ordered, name...), ':'), one...)
	}
	result.SetMeta(map[string]any{exactKey: object.Fields{"inputRequests": append(ordered, '}')}})
	return nil
}

// call answers tools/call.
func (s *Server) call(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	a, err := s.make(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if a.asks != nil {
		out := &mcpsdk.CallToolResult{InputRequests: a.asks.requests, RequestState: a.asks.state}
		return out, a.asks.in(out)
	}
	if failure := s.failureOf(ctx, r, s.entryOf(r.Params.Name), a.result); failure != nil {
		return nil, failure
	}
	return present(renamed(a.result, s.gateway.linksOf(s.entryOf(r.Params.Name))), a.output, r.ProtocolVersion(), a.notes), nil
}

// reply is the answer with the result.
func (c *call) reply() reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := *c.result
	if c.cause != "" && !r.OK() {
		r.Message += " " + c.cause
	}
	return reply{result: &r, output: c.offer.output, notes: slices.Clone(c.notes)}
}

// cut cuts s to at most n bytes of valid UTF-8.
func cut[S ~string](s S, n int) S { return S(strings.ToValidUTF8(string(s[:min(n, len(s))]), "")) }
