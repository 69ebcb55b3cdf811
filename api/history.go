package api

import "time"

// TurnState is the state of a turn in the history.
type TurnState string

// The states of a turn.
const (
	TurnOpen    TurnState = "open"    // it has no turn_end (its owner may have died)
	TurnEnded   TurnState = "ended"   // it has a turn_end
	TurnAborted TurnState = "aborted" // it has a turn_abort and a turn_end
)

// TurnSummary is a turn in the history.
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

// CallSummary is a call in the history.
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

// Filter selects entries of the history: those that match all non-zero fields.
// A turn matches Tool and Status if one of its calls does.
type Filter struct {
	TurnID       string // for lists of calls
	Tool, Status string
	// Owner is the identity that began the turn; empty means any. It is not sent: a
	// daemon sets it.
	Owner string
	// Since and Until bound the time at which the turn began or the call was
	// queued: Since <= time < Until.
	Since, Until time.Time
	// Limit is the number of entries: default 100, at most 10,000. For the next
	// page, ask again with Until.
	Limit int
}
