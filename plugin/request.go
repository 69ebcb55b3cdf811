package plugin

import (
	"context"
	"encoding/json"
)

// Requester is a Provider that answers requests of its server's protocol other than
// tool calls, such as MCP's prompts/get.
type Requester interface {
	// Request makes a request with the protocol's method and parameters. The result is
	// a JSON object; its content may be sent through out before.
	Request(ctx context.Context, method string, params json.RawMessage, out *Output) (json.RawMessage, error)
}

// Watcher is a Provider whose server sends notifications.
type Watcher interface {
	// Watch calls tell with each notification until ctx ends; tell returns an error
	// when the host is gone.
	Watch(ctx context.Context, tell func(method string, params json.RawMessage) error) error
}

// RPCError is the error response of an adapter's server.
type RPCError struct {
	// Raw is a JSON object with code, message and data.
	Raw json.RawMessage
	Err error
}

func (e *RPCError) Error() string { return e.Err.Error() }
func (e *RPCError) Unwrap() error { return e.Err }

// ClientRequest is a request of an adapter's server to its client.
type ClientRequest struct {
	Method string
	Params json.RawMessage
}

type clientKey struct{}

// ClientOf returns the host's JSON object about the caller, for adapters; nil if the
// host sent none.
func ClientOf(ctx context.Context) json.RawMessage {
	raw, _ := ctx.Value(clientKey{}).(json.RawMessage)
	return raw
}

type roundsKey struct{}

// TakesRounds reports whether the host repeats a call whose adapter's server sends a
// request instead of a result. The adapter returns that request by Output.Meta.
func TakesRounds(ctx context.Context) bool { return ctx.Value(roundsKey{}) != nil }
