package api

// Place says where a call stands.
type Place struct {
	// CallID is the call's own in its turn.
	CallID    string `json:"toolCallId,omitempty"`
	TurnID    string `json:"turnId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	AgentID   string `json:"agentId,omitempty"`
	// ParentTurnID is of a turn that another one's call, or the host, has begun below
	// it. Depth is how many turns are above.
	ParentTurnID string `json:"parentTurnId,omitempty"`
	Depth        int    `json:"depth,omitempty"`
}

// Variables by which a command knows its place; a plugin has it in its call. Those
// that would be empty are not set.
const (
	CallIDVariable       = "TOOLHOST_CALL_ID"
	TurnIDVariable       = "TOOLHOST_TURN_ID"
	SessionIDVariable    = "TOOLHOST_SESSION_ID"
	AgentIDVariable      = "TOOLHOST_AGENT_ID"
	ParentTurnIDVariable = "TOOLHOST_PARENT_TURN_ID"
	DepthVariable        = "TOOLHOST_DEPTH"
	// MetaVariable has the metadata beside the arguments, up to 64 KiB.
	MetaVariable = "TOOLHOST_META"
	// TurnsVariable has the path of the unix socket at which the call can begin turns
	// of its own, if it may: package client takes it as Options.Socket.
	TurnsVariable = "TOOLHOST_TURNS_SOCKET"
)

// CallVariables are the names of all variables that toolhost sets for one call.
var CallVariables = []string{
	CallIDVariable, TurnIDVariable, SessionIDVariable, AgentIDVariable, ParentTurnIDVariable, DepthVariable, MetaVariable, TurnsVariable,
}
