package daemon

import (
	"context"
	"testing"

	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// Tools that could not be described are tried again for as long as MCP clients
// may come, each reading of the configuration by itself.
func TestMCPRetries(t *testing.T) {
	turns := turn.New(turn.Config{})
	defer turns.Close()
	listed, begun, over := make(chan bool, 8), make(chan func(), 8), make(chan bool, 8)
	m := &mcp{
		describe: func(context.Context) {},
		config: func() mcpserver.Config {
			return mcpserver.Config{Turns: turns, Asker: mcpserver.NewAsker(), Tools: func(context.Context) ([]catalog.Tool, []error) {
				listed <- true
				return nil, nil
			}}
		},
		retry: func(ctx context.Context, recovered func()) {
			begun <- recovered
			<-ctx.Done()
			over <- true
		},
	}
	m.reload(t.Context())
	if len(begun) != 0 {
		t.Fatal("tried again for nobody")
	}
	if _, err := m.open(); err != nil {
		t.Fatal(err)
	}
	recovered := receive(t, begun)
	receive(t, listed)
	recovered()
	receive(t, listed)

	m.reload(t.Context())
	receive(t, listed)
	receive(t, over)
	receive(t, begun)

	m.drain()
	m.close()
	receive(t, over)
	if _, err := m.open(); err != nil {
		t.Fatal(err)
	}
	m.reload(t.Context())
	if len(begun) != 0 {
		t.Error("tried again after the end")
	}
}

// A reload offers what is known when its time is over, and the rest once it is described.
func TestMCPReloadsBehindTheReload(t *testing.T) {
	turns := turn.New(turn.Config{})
	defer turns.Close()
	listed, described := make(chan context.Context, 8), make(chan bool)
	m := &mcp{
		config: func() mcpserver.Config {
			return mcpserver.Config{Turns: turns, Asker: mcpserver.NewAsker(), Tools: func(ctx context.Context) ([]catalog.Tool, []error) {
				listed <- ctx
				return nil, nil
			}}
		},
		describe: func(context.Context) { <-described },
		retry:    func(ctx context.Context, _ func()) { <-ctx.Done() },
	}
	if _, err := m.open(); err != nil {
		t.Fatal(err)
	}
	receive(t, listed)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	m.reload(over)
	if receive(t, listed).Err() == nil || len(listed) != 0 {
		t.Error("it waits for what is not described")
	}
	described <- true
	if receive(t, listed).Err() != nil {
		t.Error("the list ends with the reload")
	}
	m.drain()
	m.close()
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-wait.Context(t).Done():
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}
