package mcpserver

import (
	"context"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// survive has a panic end its own request alone, as net/http does: the SDK runs requests on
// goroutines of its own, whose panics would end the host and every client's calls.
func (s *Server) survive(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (result mcpsdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.config.Logger.Error("bug: a request has panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "bug: toolhost could not answer this request; its log says why"}
			}
		}()
		return next(ctx, method, r)
	}
}
