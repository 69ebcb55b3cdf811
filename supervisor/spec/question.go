package spec

import (
	"encoding/json"
	"time"
)

// Question is what a tool asks a human in the middle of a call. Its JSON, and that of an
// Answer, goes between the machines of a fleet.
type Question struct {
	// ID is the tool's own, unique within the call.
	ID     string `json:"id"`
	Prompt string `json:"prompt,omitempty"`
	// Schema is the JSON Schema of the value wanted; empty is yes or no.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Timeout is what the tool would like; 0 means no preference.
	Timeout time.Duration `json:"timeoutNs,omitempty"`
	// Reach is the name and port that the tool wants to connect to, in a question of
	// toolhost's own whether it may. The answer is yes or no.
	Reach string `json:"reach,omitempty"`
	// Secret says that the answer is a credential, which must be shown and kept nowhere.
	Secret bool `json:"secret,omitempty"`
	// Requests are, in place of Prompt and Schema, what an adapter's server asks of
	// its client, by its own keys. The answer's value is an object with the results
	// by these keys, without those that nobody gave.
	Requests map[string]ClientRequest `json:"requests,omitempty"`
}

// ClientRequest is what a server asks of its client, such as
// sampling/createMessage.
type ClientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Answer is a human's, or says why nobody answered.
type Answer struct {
	// Value is the JSON value; empty if Denied says why. A value that is not JSON as tools
	// can read it, or has nearly 4 MiB, is not passed on: the tool gets a denial (failed),
	// and the result a warning.
	Value json.RawMessage `json:"value,omitempty"`
	// Always says that a yes about a connection holds for the whole turn.
	Always bool `json:"always,omitempty"`
	// Denied is empty, or user, timeout, headless, ...
	Denied string `json:"denied,omitempty"`
	// Meta is what an MCP client has said beside its answer, a JSON object; empty if nothing.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Unused, if not nil, is called at most once, where a yes about one connection has let
	// none through: the tool had given up, which was not known yet when the answer was
	// given. The yes is the asker's again, for the tool's next connection to that name.
	Unused func() `json:"-"`
}
