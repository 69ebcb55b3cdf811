package format

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// Call is one tool call that a model requested.
type Call struct {
	// ID is the provider's ID, never empty and unique within a response. For MCP
	// it is the JSON-RPC id; a number is written in decimal.
	ID string `json:"id"`
	// Tool is the name that the model used, unchecked. It is empty if the model
	// gave none, which is a Problem.
	Tool string `json:"tool"`
	// Arguments is a JSON object, compact; {} if the model gave none. Nil if
	// there is a Problem.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Meta is a JSON object besides the arguments, MCP's _meta; nil if the
	// format has none or the model gave none.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Problem says why this call must not run; its result is then invalid_args,
	// and says so. It is empty for a valid call.
	Problem string `json:"problem,omitempty"`
	// Custom is set for a call of OpenAI's custom tools, whose results have
	// another type. Such a call always has a Problem.
	Custom bool `json:"custom,omitempty"`
	// NoID is set if the model gave no ID, as Gemini's may, and ID was made up.
	// The result is then sent without one.
	NoID bool `json:"noID,omitempty"`

	deep bool // arguments or Meta are nested too deep, which is a Problem
}

// Tool describes a tool to a model.
type Tool struct {
	Name, Title, Description string
	// InputSchema is the JSON Schema of the arguments, of type object; empty
	// for a tool that takes none.
	InputSchema json.RawMessage
	// OutputSchema is the JSON Schema of the structured result; it may be empty.
	OutputSchema json.RawMessage
	// ReadOnly and the others are MCP's annotations; nil means no claim.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Provider is one format. Its methods are pure, and safe for concurrent use.
type Provider interface {
	// Name returns the name of the format: anthropic, openai (Responses),
	// openai-chat, mcp or gemini.
	Name() string
	// Calls returns the tool calls in the body of a complete response (not a
	// stream), in the model's order. A response may have none. Calls that the
	// provider executes itself, and unknown items, are skipped. A response over
	// the limits gives a *LimitError.
	//
	// For mcp, the response is what a client sent: one JSON-RPC message, or a
	// batch.
	Calls(response []byte) ([]Call, error)
	// Results encodes the results of calls, results[i] for calls[i]: one user
	// message for Anthropic, a list of items or messages for OpenAI, a list of
	// CallToolResults for MCP, or one content for Gemini. Without calls it
	// returns an empty list, which need not be sent. It fails only if the
	// lengths differ or a result is nil.
	//
	// Warnings are shown as a note, in a separate block if the format has
	// blocks. Timing.SettingsWarnings, which are for the operator, are left out.
	Results(calls []Call, results []*api.Result) ([]byte, error)
	// Tools encodes the list of tools for a model. It fails, naming the tools,
	// if the API would refuse a name or a schema.
	Tools(tools []Tool) ([]byte, error)
}

var providers = []Provider{anthropic{}, responses{}, chat{}, mcp{}, gemini{}}

// Names returns the names of all formats.
func Names() []string {
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, p.Name())
	}
	return names
}

// Lookup returns the format of the given name. The error lists the known names.
func Lookup(name string) (Provider, error) {
	for _, p := range providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: known are %s", shorten(name), strings.Join(Names(), ", "))
}
