package api

import (
	"encoding/json"
	"time"
)

// Scopes of a lasting approval: one turn, the turns of one session, or all turns of
// an identity.
const (
	ForTurn     = "turn"
	ForSession  = "session"
	ForIdentity = "identity"
)

// Approval is a human's approval of more than one call of a tool. It holds for the tool
// as it was when approved. If an operator's rule asked, it covers only calls that the
// same rule asks about.
type Approval struct {
	ID   string `json:"approvalId"`
	Tool string `json:"toolName"`
	Rule string `json:"rule,omitempty" jsonschema:"the operator's rule that had asked, or the name that was to be reached; the approval is for what asks in the same words"`
	For  string `json:"for" jsonschema:"turn, session or identity"`
	// Owner is the identity whose calls are approved; TurnID or SessionID narrow them.
	Owner     string `json:"owner,omitempty" jsonschema:"whose calls it is for"`
	TurnID    string `json:"turnId,omitempty" jsonschema:"the turn that it is for"`
	SessionID string `json:"sessionId,omitempty" jsonschema:"the session that it is for"`
	// Arguments restrict the approval to calls with the same ones; absent means any.
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"it is for calls with these arguments alone; absent is any"`
	By        string          `json:"by" jsonschema:"who gave it"`
	At        time.Time       `json:"at"`
	ExpiresAt time.Time       `json:"expiresAt,omitzero" jsonschema:"absent for a turn: it ends with that"`
	Uses      int             `json:"uses" jsonschema:"how many calls have gone by it; a daemon that was killed has lost those of its last seconds"`
	LastUse   time.Time       `json:"lastUse,omitzero"`
	RevokedAt time.Time       `json:"revokedAt,omitzero" jsonschema:"it is over, but that could not be written for the next daemon yet; revoking it tries again"`
}

// Approvals lists the approvals in force, and those whose revocation is not on disk yet.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}
