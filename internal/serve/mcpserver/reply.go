package mcpserver

import (
	"context"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
)

// reply is what a request is answered with: a result, or what is asked for.
type reply struct {
	result  *api.Result
	promise promise
	notes   []string
	asks    *inputs
}

// inputs are what a request of 2026-07-28 is to come back with.
type inputs struct {
	requests mcpsdk.InputRequestMap
	state    string
}

// call answers tools/call.
func (s *Server) call(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	a, err := s.make(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if a.asks != nil {
		return &mcpsdk.CallToolResult{InputRequests: a.asks.requests, RequestState: a.asks.state}, nil
	}
	if failure := rpcOf(a.result); failure != nil {
		return nil, failure
	}
	a.result = renamed(a.result, s.gateway.linksOf(r.Params.Name))
	return present(a.result, a.promise, r.ProtocolVersion(), a.notes), nil
}

// cut cuts s to at most n bytes of valid UTF-8.
func cut[S ~string](s S, n int) S { return S(strings.ToValidUTF8(string(s[:min(n, len(s))]), "")) }
