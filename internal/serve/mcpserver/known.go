package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// whenKnown has a call wait until its tool is there. A tool that is configured and
// cannot be described is not unknown: the call is answered with the reason.
func (s *Server) whenKnown(ctx context.Context, r *mcpsdk.CallToolRequest, next func() (mcpsdk.Result, error)) (mcpsdk.Result, error) {
	name := s.meant(r.Params)
	if name == turn.StatusTool {
		return next()
	}
	err := error(&catalog.NotFoundError{Name: name})
	if name != "" {
		err = s.know(ctx, name)
	}
	if err == nil {
		return next()
	}
	if _, none := errors.AsType[*catalog.NotFoundError](err); !none && ctx.Err() == nil && !s.config.Search {
		return present(s.unavailable(name, err), outputCheck{}, r.ProtocolVersion(), nil), nil
	}
	select {
	case <-s.loaded:
		return next()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// unavailable is the result of a call whose tool is not known for a reason.
func (s *Server) unavailable(name string, err error) *api.Result {
	made := turn.Call{ID: rand.Text(), Tool: cut(name, maxWordBytes)}
	if failed, ok := errors.AsType[*catalog.DescribeError](err); ok && failed.Result != nil {
		r := *failed.Result
		r.CallID, r.Tool = made.ID, made.Tool
		return &r
	}
	if held, is := errors.AsType[*catalog.HeldError](err); is {
		return heldBack(made, held)
	}
	return refusal(made, api.StatusStartFailed, api.ReasonTool, "", err.Error())
}

// heldBack is the result of a call whose tool is.
func heldBack(made turn.Call, held *catalog.HeldError) *api.Result {
	return refusal(made, api.StatusDenied, api.ReasonPolicy, "modeGate", "the tool is held back: "+held.Tool.Held)
}
