package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// Question is a tool's question to a human during a call. Its JSON, and that of an Answer,
// is sent between the machines of a fleet.
type Question struct {
	// ID is chosen by the tool and unique within the call.
	ID     string `json:"id"`
	Prompt string `json:"prompt,omitempty"`
	// Schema is the JSON Schema of the answer's value; empty asks for yes or no.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Timeout is how long the tool would like to wait; 0 means no preference.
	Timeout time.Duration `json:"timeoutNs,omitempty"`
	// Reach is set if toolhost asks whether the tool may connect to this name and
	// port. The answer is yes or no.
	Reach string `json:"reach,omitempty"`
	// Secret is set if the answer is a credential, which must not be shown or stored.
	Secret bool `json:"secret,omitempty"`
	// Requests, instead of Prompt and Schema, are the requests of an adapter's server
	// to its client, by the server's keys. The answer's value is an object with the
	// results by these keys; keys without a result are missing.
	Requests map[string]ClientRequest `json:"requests,omitempty"`
}

// ClientRequest is a request of an MCP server to its client, such as
// sampling/createMessage.
type ClientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Answer answers a Question, or says why nobody did.
type Answer struct {
	// Value is the JSON value; empty if Denied is set. A value that is not JSON as tools can
	// read it, or has nearly 4 MiB, is not passed on: the tool gets a denial (failed), and the
	// result a warning.
	Value json.RawMessage `json:"value,omitempty"`
	// Always is set if a yes to a connection holds for the whole turn.
	Always bool `json:"always,omitempty"`
	// Denied is why there is no answer: user, timeout, headless, ...
	Denied string `json:"denied,omitempty"`
	// Meta is the _meta of an MCP client's answer, a JSON object, or empty.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Unused, if not nil, is called at most once, if a yes to one connection was not used
	// because the tool had already given up. The yes then may be used for the tool's next
	// connection to that name.
	Unused func() `json:"-"`
}

// maxDeniedBytes bounds why there is no answer.
const maxDeniedBytes = 4 << 10

// Passable returns the answer as every tool can read it, with a value of at most most bytes:
// one that is not JSON would be the tool's failure, or never reach it. An error says why the
// answer is a denial (failed) instead.
func (a Answer) Passable(most int) (Answer, error) {
	if a.Denied != "" {
		a.Denied = text.Begin(strings.ToValidUTF8(a.Denied, "\uFFFD"), maxDeniedBytes)
		return a, nil
	}
	value, err := wirejson.CleanArguments(a.Value)
	if err == nil && len(value) > most {
		err = fmt.Errorf("it has %d bytes, at most %d are allowed", len(value), most)
	}
	if err != nil {
		return Answer{Denied: api.OutcomeFailed, Unused: a.Unused}, fmt.Errorf("an answer was not passed on to the tool: %w", err)
	}
	a.Value = value
	return a, nil
}
