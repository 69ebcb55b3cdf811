package plugin

import (
	"context"
	"encoding/json"
)

// Requester is a Provider that answers other requests of its server's protocol
// than calls of tools, such as MCP's prompts/get.
type Requester interface {
	// Request makes one, with parameters as that protocol has them. The result is a
	// JSON object; what of it is content may be sent as such before.
	Request(ctx context.Context, method string, params json.RawMessage, out *Output) (json.RawMessage, error)
}

// Watcher is a Provider whose server announces things by itself.
type Watcher interface {
	// Watch hands on each notification until ctx ends; tell returns an error when
	// the host is gone.
	Watch(ctx context.Context, tell func(method string, params json.RawMessage) error) error
}

// RPCError is the error of another protocol that an adapter's server has answered
// with.
type RPCError struct {
	// Raw is a JSON object with code, message and data.
	Raw json.RawMessage
	Err error
}

func (e *RPCError) Error() string { return e.Err.Error() }
func (e *RPCError) Unwrap() error { return e.Err }

// ClientRequest is what an adapter's server asks of its client.
type ClientRequest struct {
	Method string
	Params json.RawMessage
}

type clientKey struct{}

// ClientOf is what the host says of who has made the call, for adapters: a JSON
// object, nil if it says nothing.
func ClientOf(ctx context.Context) json.RawMessage {
	raw, _ := ctx.Value(clientKey{}).(json.RawMessage)
	return raw
}

type roundsKey struct{}

// TakesRounds says whether the host makes the request anew where an adapter's server
// asks for something instead of a result, which is then handed over by Output.Meta.
func TakesRounds(ctx context.Context) bool { return ctx.Value(roundsKey{}) != nil }
