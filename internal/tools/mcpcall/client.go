// Package mcpcall is what the MCP server tells the adapter of MCP servers about
// the client of a call, through a host that does not read it.
package mcpcall

import "encoding/json"

// ElicitationComplete is a server's notification that a human is done at an address that
// its client was asked to open. A process that no host watches hands it on in a call's
// log, whose order is that of the call: as the logger, with the parameters as the data.
const ElicitationComplete = "notifications/elicitation/complete"

// ServerEnded is what the adapter announces where its server has ended and itself lives on:
// the next call starts another one, which knows of no subscription.
const ServerEnded = "dev.toolhost/serverEnded"

// LogLevels are those of MCP's logs, the least severe first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Client is who has asked.
type Client struct {
	// Capabilities are those that the client declares, an object; nil for a caller
	// that does not speak MCP.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	// Protocol is the version that the client speaks; empty for such a caller.
	Protocol string `json:"protocol,omitempty"`
	// LogLevel is the one that it wants messages from; empty if none.
	LogLevel string `json:"logLevel,omitempty"`
	// InputResponses and RequestState are those of a request of 2026-07-28 that
	// answers what a server has asked for and toolhost does not wait for.
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   string          `json:"requestState,omitempty"`
}

// JSON is what a call carries.
func (c Client) JSON() json.RawMessage {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil // a raw part that is no JSON, which the SDK has read
	}
	return raw
}

// Of reads it; the zero Client stands for what cannot be read.
func Of(raw json.RawMessage) (c Client) {
	_ = json.Unmarshal(raw, &c)
	return c
}
