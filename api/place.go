package api

// Place locates a call in its turn, session and agent.
type Place struct {
	// CallID is unique in the turn.
	CallID    string `json:"toolCallId,omitempty"`
	TurnID    string `json:"turnId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	AgentID   string `json:"agentId,omitempty"`
	// ParentTurnID is the turn that this call's turn is a child of. Depth is the number
	// of turns above this one.
	ParentTurnID string `json:"parentTurnId,omitempty"`
	Depth        int    `json:"depth,omitempty"`
}

// Environment variables that tell a command its Place; a plugin gets it with each
// call. Empty ones are not set.
const (
	CallIDVariable       = "TOOLHOST_CALL_ID"
	TurnIDVariable       = "TOOLHOST_TURN_ID"
	SessionIDVariable    = "TOOLHOST_SESSION_ID"
	AgentIDVariable      = "TOOLHOST_AGENT_ID"
	ParentTurnIDVariable = "TOOLHOST_PARENT_TURN_ID"
	DepthVariable        = "TOOLHOST_DEPTH"
	// MetaVariable holds the call's metadata, up to 64 KiB.
	MetaVariable = "TOOLHOST_META"
	// TurnsVariable holds the path of a unix socket, if the call may begin child turns.
	// Pass it to package client as Options.Socket.
	TurnsVariable = "TOOLHOST_TURNS_SOCKET"
)

// CallVariables lists the environment variables that toolhost sets for one call.
var CallVariables = []string{
	CallIDVariable, TurnIDVariable, SessionIDVariable, AgentIDVariable, ParentTurnIDVariable, DepthVariable, MetaVariable, TurnsVariable,
}
