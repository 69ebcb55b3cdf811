package format

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// Call is one tool call that a model asked for.
type Call struct {
	// ID is the provider's, never empty and unique within a response. That of
	// MCP is the JSON-RPC id, a number by its digits.
	ID string `json:"id"`
	// Tool is the name that the model used; nothing else is known of it. Empty if
	// it gave none, which is a Problem.
	Tool string `json:"tool"`
	// Arguments is a JSON object, compact; {} if the model gave none. Nil if
	// there is a Problem.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Meta is a JSON object beside the arguments, MCP's _meta; nil if the
	// format has none or the model gave none.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Problem says why this call must not run (its result is then an
	// invalid_args that says so); empty for a sound one.
	Problem string `json:"problem,omitempty"`
	// Custom: it is a call of OpenAI's custom tools, whose results have another
	// type. It has a Problem, always.
	Custom bool `json:"custom,omitempty"`
	// NoID: the model gave none, as Gemini's may, and ID is made up. Its result
	// goes back without one.
	NoID bool `json:"noID,omitempty"`

	deep bool // arguments or Meta are nested too deep, which is a Problem
}

// Tool is what a model must know to call a tool.
type Tool struct {
	Name, Title, Description string
	// InputSchema is the JSON Schema of the arguments, of type object; empty
	// for a tool that takes none.
	InputSchema json.RawMessage
	// OutputSchema is that of the structured result; it may be empty.
	OutputSchema json.RawMessage
	// Nil says nothing.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Provider is one format. Its methods are pure and may be called from any
// goroutine.
type Provider interface {
	// Name is that of the format: anthropic, openai (Responses), openai-chat,
	// mcp or gemini.
	Name() string
	// Calls reads the tool calls of a whole response (the body; streams are
	// not read) in the model's order; none is not an error. Calls that the
	// provider executes itself, and unknown items, are passed over. A response
	// over the limits gives a *LimitError.
	//
	// The response of mcp is what a client sent: one JSON-RPC message, or a
	// batch.
	Calls(response []byte) ([]Call, error)
	// Results writes what goes back for calls, results[i] for calls[i]:
	// Anthropic's one user message, OpenAI's list of items or messages, a list
	// of MCP's CallToolResults, or Gemini's one content. No calls give an empty list; there is
	// nothing to send then. It fails only if the two don't match.
	//
	// Warnings are shown as a note, in a block of its own where the format has
	// blocks, but not those that only settings have brought about
	// (Timing.SettingsWarnings): they are for the operator.
	Results(calls []Call, results []*api.Result) ([]byte, error)
	// Tools writes the list of tools that a model is offered. It fails, naming
	// the tools, if the API would refuse a name or a schema.
	Tools(tools []Tool) ([]byte, error)
}

var providers = []Provider{anthropic{}, responses{}, chat{}, mcp{}, gemini{}}

// Names are those that Lookup knows.
func Names() []string {
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, p.Name())
	}
	return names
}

// Lookup finds a format by its name.
func Lookup(name string) (Provider, error) {
	for _, p := range providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: known are %s", shorten(name), strings.Join(Names(), ", "))
}
