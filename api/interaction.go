package api

import (
	"encoding/json"
	"strings"
	"time"
)

// InteractionKind is what a human is asked for.
type InteractionKind string

// Kinds of interactions.
const (
	KindApproval      InteractionKind = "approval"
	KindConfirm       InteractionKind = "confirm" // of something destructive
	KindPassword      InteractionKind = "password"
	KindDeviceCode    InteractionKind = "device_code"
	KindQuestionnaire InteractionKind = "questionnaire" // a tool's own, in mid-call
	KindEscalation    InteractionKind = "escalation"    // the agent hands something over to a human
	KindSampling      InteractionKind = "sampling"      // a wrapped server asks for the client's model
	KindRoots         InteractionKind = "roots"         // or for the folders that its client works in
)

// Outcomes of an interaction.
const (
	OutcomeAnswered  = "answered"
	OutcomeDenied    = "denied"    // a human said no
	OutcomeDismissed = "dismissed" // a human was asked, and said neither yes nor no
	OutcomeFailed    = "failed"    // nobody could be asked
	OutcomeTimedOut  = "timeout"   // nobody said anything in time
	OutcomeHeadless  = "headless"  // nobody was asked
	OutcomeCancelled = "cancelled" // the call or turn ended first
)

// Interaction is a question to a human that waits for an answer. Without a
// Schema it wants a yes or no or, of a Secret, text. A headless turn takes the
// Default at once.
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
	// Always are what an Answer's Always can be for.
	Always []string `json:"always,omitempty" jsonschema:"what an approval for more than this call can be for: turn, session or identity; absent if it can only be for this call"`
}

// ReachRule is the Rule of a question about a connection to a name that is not
// granted.
func ReachRule(to string) string { return reachPrefix + to }

const reachPrefix = "network "

// Reach is the name and port that the tool wants to connect to; empty if the question
// is not about that.
func (i Interaction) Reach() string {
	to, _ := strings.CutPrefix(i.Rule, reachPrefix)
	if to == i.Rule { // an operator's rule begins otherwise
		return ""
	}
	return to
}

// ClientRequest is a request of a wrapped server to its client, as it made it.
type ClientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// Key is the server's own for the request, Group the same for requests that were
	// made together, Of how many these are, and Nth this one's place among them.
	Key string `json:"key,omitempty"`
	// URL is what the server wants opened, if it does, and Server is who that is.
	URL    string `json:"-"`
	Server string `json:"-"`
	Group  string `json:"-"`
	Of     int    `json:"-"`
	Nth    int    `json:"-"`
}

// OfClient says whether only a client of MCP can answer, and no human.
func (k InteractionKind) OfClient() bool { return k == KindSampling || k == KindRoots }

// RefusedKey is the one field of an answer to a server's request that stands for an error of
// the client's, which it holds.
const RefusedKey = "dev.toolhost/refused"

// Question is what a host asks a human in a turn. Without a Schema it wants a yes or
// no or, of a password, text.
type Question struct {
	Kind      InteractionKind `json:"kind" jsonschema:"approval, confirm (of something destructive), password, device_code, questionnaire or escalation"`
	Prompt    string          `json:"prompt" jsonschema:"what people read, at most 16 KiB"`
	Schema    json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema of the value wanted, at most 16 KiB; absent for yes or no"`
	TimeoutMs int64           `json:"timeoutMs,omitempty" jsonschema:"how long to wait, at most an hour and within the bounds that are configured; 0 is the configured time, which a device_code may not have"`
	Secret    bool            `json:"secret,omitempty" jsonschema:"the answer must be shown and kept nowhere; a password's always is"`
	CallID    string          `json:"toolCallId,omitempty" jsonschema:"the call under way that it is about; it ends with that call"`
	Tool      string          `json:"toolName,omitempty" jsonschema:"the tool that it is about; of a call, the call's"`
}

// Raised is what came of a question.
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
	// Key differs where policies do, also in what people are not shown. It is on no
	// wire.
	Key string `json:"-"`
}

// Answer is a human's to an interaction. Value, of at most 64 KiB, must fit the
// schema. Always counts for approvals only: what destroys something is confirmed
// each time.
type Answer struct {
	Approve bool            `json:"approve,omitempty" jsonschema:"the answer to yes or no; false denies, unless there is a value"`
	Value   json.RawMessage `json:"value,omitempty" jsonschema:"answers what has a schema"`
	Always  bool            `json:"always,omitempty" jsonschema:"approves further calls like this one, too, as long as for says"`
	// For is ForTurn if empty. SameArguments narrows it.
	For           string `json:"for,omitempty" jsonschema:"with always: turn (the default), session (the turns with the same sessionId, for 12 hours at most) or identity (all turns of whose call it is, for 30 days, kept over restarts)"`
	SameArguments bool   `json:"sameArguments,omitempty" jsonschema:"with always: only calls with the same arguments"`
	// Unanswered says why nothing was answered, where that is known: then the rest
	// means nothing but By. It is OutcomeDismissed, OutcomeFailed or, in the
	// process of the turn, OutcomeTimedOut or OutcomeHeadless.
	Unanswered string `json:"unanswered,omitempty" jsonschema:"dismissed: a human was asked and said neither yes nor no; failed: nobody could be asked. All else is then left out"`
	// By is who answered, for the record. It is on no wire: a daemon knows.
	By string `json:"-"`
	// Denies says that approve is there, and false: no value makes a yes of that.
	Denies bool `json:"-"`
	// Refusal, in the process of the turn, is the error that an MCP client has answered a
	// server's request with: an object with code and message.
	Refusal json.RawMessage `json:"-"`
	// Meta, in the process of the turn, is what an MCP client has said beside its answer: an
	// object, or empty.
	Meta json.RawMessage `json:"-"`
	// Unfit, in the process of the turn, is why an answer could not be used.
	Unfit string `json:"-"`
}
