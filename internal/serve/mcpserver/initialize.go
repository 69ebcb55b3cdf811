package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
)

// begun says whether a session has begun: its client has said who it is.
func begun(r mcpsdk.Request) bool {
	one, is := r.GetSession().(*mcpsdk.ServerSession)
	return is && one.InitializeParams() != nil
}

// settle stores the negotiated protocol version in the session: the SDK stores the requested
// one.
func settle(r mcpsdk.Request) {
	p, is := r.GetParams().(*mcpsdk.InitializeParams)
	if is && p != nil && (p.ProtocolVersion >= gateway.MultiRound || !slices.Contains(mcpsdk.SupportedProtocolVersions(), p.ProtocolVersion)) {
		p.ProtocolVersion = gateway.LastFormer
	}
}

// negotiate has initialize begin a session once, with a version that there is.
func (s *Server) negotiate(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if method == "initialize" && begun(r) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session has begun already: initialize begins one, and comes once"}
		}
		settle(r)
		return next(ctx, method, r)
	}
}
