package mcpserver

import (
	"context"
	"slices"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// reply is what a request is answered with: a result, or what is asked for.
type reply struct {
	result *api.Result
	output outputCheck
	notes  []string
	asks   *verbatim.Inputs
}

// call answers tools/call.
func (s *Server) call(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	a, err := s.make(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if a.asks != nil {
		out := &mcpsdk.CallToolResult{InputRequests: a.asks.Requests, RequestState: a.asks.State}
		return out, a.asks.In(out)
	}
	entry := s.entryOf(r.Params.Name)
	if failure := s.gateway.Failure(ctx, r, entry, a.result); failure != nil {
		return nil, failure
	}
	return present(s.gateway.Renamed(entry, a.result), a.output, r.ProtocolVersion(), a.notes), nil
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
