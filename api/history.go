package api

import "time"

// TurnState is where a turn of the history is.
type TurnState string

// The states of a turn.
const (
	TurnOpen    TurnState = "open"    // it has no turn_end (its owner may have died)
	TurnEnded   TurnState = "ended"   // it has a turn_end
	TurnAborted TurnState = "aborted" // it has a turn_abort and a turn_end
)

// TurnSummary is a turn of the history.
type TurnSummary struct {
	TurnID   string         `json:"turnId"`
	AgentID  string         `json:"agentId" jsonschema:"whose turn it was, empty if nobody has said so"`
	Owner    string         `json:"owner,omitempty" jsonschema:"the identity that began it; absent where that is not on record"`
	State    TurnState      `json:"state" jsonschema:"open, ended or aborted"`
	HostDied bool           `json:"hostDied,omitempty" jsonschema:"whether it is open, and nobody is there to end it: the next owner of the journal closes it"`
	Reason   Reason         `json:"reason" jsonschema:"of the abort"`
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended,omitzero" jsonschema:"absent while open"`
	Events   int64          `json:"events"`
	Calls    int            `json:"calls"`
	Outcomes map[string]int `json:"outcomes" jsonschema:"how many calls have which status"`
}

// CallSummary is a call of the history.
type CallSummary struct {
	TurnID    string    `json:"turnId"`
	CallID    string    `json:"toolCallId" jsonschema:"the call's id, made unique in its turn"`
	Tool      string    `json:"toolName"`
	Status    Status    `json:"status" jsonschema:"that of its result; open if it has none yet"`
	Reason    Reason    `json:"reason"`
	Queued    time.Time `json:"queued"`
	Started   time.Time `json:"started,omitzero" jsonschema:"absent if it never ran"`
	Ended     time.Time `json:"ended,omitzero" jsonschema:"absent while open"`
	ElapsedMs int64     `json:"elapsedMs"`
	HasResult bool      `json:"hasResult"`
}

// Filter narrows a list of the history: what all of its fields apply to that
// are not zero. A turn is listed for having a call to which Tool and Status
// apply.
type Filter struct {
	TurnID       string // of calls
	Tool, Status string
	// Owner is that of the turns, as their turn_start has it; empty is any. It is on
	// no wire: a daemon knows.
	Owner string
	// Since and Until bound when the turn began, or the call was queued: Since
	// <= time < Until.
	Since, Until time.Time
	// Limit is how many are listed: default 100, at most 10,000. To go on, ask
	// again with Until.
	Limit int
}
