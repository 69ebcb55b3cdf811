package plugin

import (
	"context"
	"encoding/json"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Place locates a call in its turn, session and agent. The IDs are the host's, and
// may be empty.
type Place struct {
	// CallID is unique in the turn.
	CallID, TurnID, SessionID, AgentID string
	// ParentTurnID is the parent of a child turn. Depth is the number of turns above
	// this one.
	ParentTurnID string
	Depth        int
	// Meta is the call's metadata, a JSON object like MCP's _meta, or nil.
	Meta json.RawMessage
}

type placeKey struct{}

// PlaceOf returns the place of the call whose context is ctx, or of a context derived
// from it. It is zero for other contexts, or if the host sent none.
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
