package spec

import (
	"encoding/json"
	"time"
)

// Question is what a tool asks a human in the middle of a call.
type Question struct {
	// ID is the tool's own, unique within the call.
	ID     string
	Prompt string
	// Schema is the JSON Schema of the value wanted; empty is yes or no.
	Schema json.RawMessage
	// Timeout is what the tool would like; 0 if it doesn't mind.
	Timeout time.Duration
	// Reach is the name and port that the tool wants to connect to, where the question
	// is of toolhost's own: may it? Its answer is yes or no.
	Reach string
	// Secret: the answer is a credential, to be shown and kept nowhere.
	Secret bool
	// Requests are, in place of Prompt and Schema, what an adapter's server asks of
	// its client, by its own keys. The answer's value is an object with the results
	// by these keys, without those that nobody gave.
	Requests map[string]ClientRequest
}

// ClientRequest is what a server asks of its client, such as
// sampling/createMessage.
type ClientRequest struct {
	Method string
	Params json.RawMessage
}

// Answer is a human's, or says why nobody answered.
type Answer struct {
	// Value is the JSON value; empty if Denied says why.
	Value json.RawMessage
	// Always: a yes about a connection holds for the whole turn.
	Always bool
	// Denied is empty, or user, timeout, headless, ...
	Denied string
}
