package bench

import (
	"context"
	"encoding/json"
	"testing"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

func mustCall(b *testing.B, host *supervisor.Supervisor, r supervisor.Request) {
	if result := host.Call(context.Background(), r); !result.OK() {
		b.Fatal(result.Message)
	}
}

// sandboxed is the bare sandboxed call that others are measured against.
func sandboxed(host *supervisor.Supervisor) func(*testing.B) {
	return func(b *testing.B) {
		mustCall(b, host, supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments})
	}
}

// BenchmarkCommandTool: a command line as a tool against a plugin, both in the
// sandbox.
func BenchmarkCommandTool(b *testing.B) {
	tool, err := supervisor.NewCommandTool(supervisor.CommandSpec{
		Description: &pluginv1.ToolDescription{Name: "true", InputSchema: []byte(`{"type":"object"}`)},
		Build:       func(json.RawMessage) ([]string, []byte, error) { return []string{"true"}, nil, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	host := newHost(b)
	contest(b, func(b *testing.B) {
		mustCall(b, host, supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}, Tool: tool}, Arguments: arguments})
	}, sandboxed(host), func() { settle(host) })
}

// BenchmarkKeptCall: a call on a kept process against one with a process of its
// own.
func BenchmarkKeptCall(b *testing.B) {
	host := newHost(b)
	contest(b, func(b *testing.B) {
		mustCall(b, host, supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments, Keep: &supervisor.Keep{}})
	}, sandboxed(host), func() { settle(host) })
}
