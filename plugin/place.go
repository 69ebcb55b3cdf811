package plugin

import (
	"context"
	"encoding/json"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Place says where a call stands: whose it is, and what came with it. The ids are
// the host's, and empty where it has none.
type Place struct {
	// CallID is the call's own in its turn.
	CallID, TurnID, SessionID, AgentID string
	// ParentTurnID is of a turn that stands below another one, and Depth is how many
	// are above it.
	ParentTurnID string
	Depth        int
	// Meta is a JSON object beside the arguments, as MCP's _meta,
	// or nil.
	Meta json.RawMessage
}

type placeKey struct{}

// PlaceOf returns the place of the call that ctx was made for; the zero Place if
// it was made for none, or the host says nothing.
func PlaceOf(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey{}).(Place)
	return p
}

func withPlace(ctx context.Context, request *pluginv1.CallRequest) context.Context {
	p := request.GetPlace()
	if request.GetRounds() {
		ctx = context.WithValue(ctx, roundsKey{}, true)
	}
	if client := request.GetClient(); len(client) > 0 {
		ctx = context.WithValue(ctx, clientKey{}, json.RawMessage(client))
	}
	return context.WithValue(ctx, placeKey{}, Place{
		CallID: p.GetCallId(), TurnID: p.GetTurnId(), SessionID: p.GetSessionId(), AgentID: p.GetAgentId(),
		ParentTurnID: p.GetParentTurnId(), Depth: int(p.GetDepth()), Meta: request.GetMeta(),
	})
}
