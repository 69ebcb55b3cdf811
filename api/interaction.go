package api

import (
	"encoding/json"
	"strings"
	"time"
)

// InteractionKind says what an Interaction asks for.
type InteractionKind string

// Kinds of interactions.
const (
	KindApproval      InteractionKind = "approval"
	KindConfirm       InteractionKind = "confirm" // of something destructive
	KindPassword      InteractionKind = "password"
	KindDeviceCode    InteractionKind = "device_code"
	KindQuestionnaire InteractionKind = "questionnaire" // a tool asks during a call
	KindEscalation    InteractionKind = "escalation"    // the agent hands something over to a human
	KindSampling      InteractionKind = "sampling"      // a wrapped server asks for the client's model
	KindRoots         InteractionKind = "roots"         // a wrapped server asks for the folders that its client works in
)

// Outcomes of an interaction.
const (
	OutcomeAnswered  = "answered"
	OutcomeDenied    = "denied"    // a human said no
	OutcomeDismissed = "dismissed" // a human was asked, and said neither yes nor no
	OutcomeFailed    = "failed"    // nobody could be asked
	OutcomeTimedOut  = "timeout"   // nobody answered in time
	OutcomeHeadless  = "headless"  // the turn is headless: nobody was asked
	OutcomeCancelled = "cancelled" // the call or turn ended first
)

// Interaction is a pending question to a human. Without a Schema the answer is
// yes or no or, for a Secret, text. A headless turn takes the Default at once.
type Interaction struct {
	ID        string          `json:"interactionId"`
	TurnID    string          `json:"turnId"`
	CallID    string          `json:"toolCallId"`
	Tool      string          `json:"toolName"`
	Kind      InteractionKind `json:"kind" jsonschema:"approval, confirm (of something destructive), password, device_code, questionnaire or escalation"`
	Prompt    string          `json:"prompt"`
	Schema    json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema of the value wanted; absent for yes or no"`
	Default   json.RawMessage `json:"default,omitempty" jsonschema:"what the schema declares as default, for people to accept"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"the call's, for an approval"`
	Rule      string          `json:"rule,omitempty" jsonschema:"the operator's rule that asks for this approval, or network NAME:PORT for a connection to a name that is not granted; absent if the tool's mode does"`
	Policy    *Policy         `json:"policy,omitempty" jsonschema:"what the call may touch, for an approval"`
	TimeoutMs int64           `json:"timeoutMs" jsonschema:"from its beginning; then it is denied"`
	ExpiresAt time.Time       `json:"expiresAt"`
	Secret    bool            `json:"secret,omitempty" jsonschema:"the answer must be shown and kept nowhere"`
	Request   *ClientRequest  `json:"request,omitempty" jsonschema:"what a wrapped server asks of its client: sampling and roots are for clients of MCP to answer, not for people"`
	Host      bool            `json:"host,omitempty" jsonschema:"the turn's host asks it, not a tool and not for a call's approval"`
	Owner     string          `json:"owner,omitempty" jsonschema:"the identity whose turn it is"`
	// Always lists the scopes that an Answer with Always may have.
	Always []string `json:"always,omitempty" jsonschema:"what an approval for more than this call can be for: turn, session or identity; absent if it can only be for this call"`
}

// ReachRule returns the Rule of an Interaction about a connection to a name that
// is not granted.
func ReachRule(to string) string { return reachPrefix + to }

const reachPrefix = "network "

// Reach returns the name and port that the tool wants to connect to, or "" if the
// interaction is not about a connection.
func (i Interaction) Reach() string {
	to, _ := strings.CutPrefix(i.Rule, reachPrefix)
	if to == i.Rule { // an operator's rule begins otherwise
		return ""
	}
	return to
}

// ClientRequest is a request of a wrapped server to its client, unchanged.
type ClientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// Key is the server's key for the request. Requests made together have the same
	// Group; Of is their number, and Nth the position of this one.
	Key string `json:"key,omitempty"`
	// URL is the address that the server wants opened, if any; Server names the server.
	URL    string `json:"-"`
	Server string `json:"-"`
	Group  string `json:"-"`
	Of     int    `json:"-"`
	Nth    int    `json:"-"`
}

// OfClient reports whether an MCP client must answer, not a human.
func (k InteractionKind) OfClient() bool { return k == KindSampling || k == KindRoots }

// RefusedKey is the only field of an answer to a server's request if the client answered with
// an error: its value is that error.
const RefusedKey = "dev.toolhost/refused"

// Question is a host's question to a human in a turn. Without a Schema the answer is
// yes or no or, for a password, text.
type Question struct {
	Kind      InteractionKind `json:"kind" jsonschema:"approval, confirm (of something destructive), password, device_code, questionnaire or escalation"`
	Prompt    string          `json:"prompt" jsonschema:"what people read, at most 16 KiB"`
	Schema    json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema of the value wanted, at most 16 KiB; absent for yes or no"`
	TimeoutMs int64           `json:"timeoutMs,omitempty" jsonschema:"how long to wait, at most an hour and within the bounds that are configured; 0 is the configured time, which a device_code may not have"`
	Secret    bool            `json:"secret,omitempty" jsonschema:"the answer must be shown and kept nowhere; a password's always is"`
	CallID    string          `json:"toolCallId,omitempty" jsonschema:"the call under way that it is about; it ends with that call"`
	Tool      string          `json:"toolName,omitempty" jsonschema:"the tool that it is about; of a call, the call's"`
}

// Raised is the outcome of a Question.
type Raised struct {
	InteractionID string          `json:"interactionId"`
	Outcome       string          `json:"outcome" jsonschema:"answered; else there is no answer: denied, dismissed, failed, timeout, headless or cancelled"`
	Approve       bool            `json:"approve,omitempty" jsonschema:"of answered: the answer to yes or no"`
	Value         json.RawMessage `json:"value,omitempty" jsonschema:"of answered: the value; of headless: the default that the schema declares, if any"`
	By            string          `json:"by,omitempty" jsonschema:"who or what has decided"`
	Warning       string          `json:"warning,omitempty" jsonschema:"a timeout was clamped"`
}

// Policy is what a call may touch, as people are shown it.
type Policy struct {
	Tier    string   `json:"tier" jsonschema:"native, or none: no sandbox"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Network string   `json:"network" jsonschema:"none, host or grants"`
	Grants  []string `json:"grants,omitempty" jsonschema:"of network grants: the names and addresses that the call may reach"`
	// Key differs between different policies, even if their visible fields are equal.
	// It is not sent.
	Key string `json:"-"`
}

// Answer is a human's answer to an Interaction. Value, at most 64 KiB, must match
// the schema. Always applies to approvals only: destructive calls are confirmed
// each time.
type Answer struct {
	Approve bool            `json:"approve,omitempty" jsonschema:"the answer to yes or no; false denies, unless there is a value"`
	Value   json.RawMessage `json:"value,omitempty" jsonschema:"answers what has a schema"`
	Always  bool            `json:"always,omitempty" jsonschema:"approves further calls like this one, too, as long as for says"`
	// For is the scope with Always; empty means ForTurn. SameArguments narrows it.
	For           string `json:"for,omitempty" jsonschema:"with always: turn (the default), session (the turns with the same sessionId, for 12 hours at most) or identity (all turns of whose call it is, for 30 days, kept over restarts)"`
	SameArguments bool   `json:"sameArguments,omitempty" jsonschema:"with always: only calls with the same arguments"`
	// Unanswered says why there is no answer, if known; all other fields but By are
	// then ignored. It is OutcomeDismissed, OutcomeFailed or, in the process of the
	// turn, OutcomeTimedOut or OutcomeHeadless.
	Unanswered string `json:"unanswered,omitempty" jsonschema:"dismissed: a human was asked and said neither yes nor no; failed: nobody could be asked. All else is then left out"`
	// By is who answered, for the record. It is not sent: a daemon sets it.
	By string `json:"-"`
	// Denies is set if approve is present and false: no Value turns that into a yes.
	Denies bool `json:"-"`
	// Refusal, in the process of the turn, is an MCP client's error response to a server's
	// request: an object with code and message.
	Refusal json.RawMessage `json:"-"`
	// Meta, in the process of the turn, is the _meta of an MCP client's answer: an object, or
	// empty.
	Meta json.RawMessage `json:"-"`
	// Unfit, in the process of the turn, is why an answer could not be used.
	Unfit string `json:"-"`
}
