package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// played are calls of wrapped servers that a test plays: each goes well at once.
type played struct {
	meanwhile func(name string) // called during each; nil does nothing
	// fails, if not nil, returns the error that the server answers with, or nil.
	fails func(name string) *jsonrpc.Error
	// listing, if not nil, is what the list of servers waits for to be closed.
	listing chan struct{}

	mu    sync.Mutex
	asked []string
}

type over struct{ result *api.Result }

func (over) Abort(api.Reason)      {}
func (o over) Result() *api.Result { return o.result }

func (p *played) start(_ context.Context, r supervisor.Request) turn.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Name+" "+object.Text(r.Arguments, "uri"))
	if p.meanwhile != nil {
		p.meanwhile(r.Name)
	}
	result := supervisor.Verdict{CallID: r.ID, Tool: r.Name, Status: api.StatusOK}.Result()
	result.Instance = api.InstanceReused
	if p.fails != nil {
		if e := p.fails(r.Name); e != nil {
			result.Status, result.ToolError = api.StatusToolError, &api.ToolError{Kind: "error", Message: e.Message}
			result.ToolError.RPC, _ = json.Marshal(e)
		}
	}
	return over{result}
}

func (p *played) times(what string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.asked {
		if one == what {
			n++
		}
	}
	return n
}

func (p *played) listed() bool {
	select {
	case <-p.listing:
	default:
		return p.listing == nil
	}
	return true
}

// kept is a server whose process is.
func kept(one catalog.Server) catalog.Server {
	one.Entry.MCP.Keep = &config.Keep{}
	return one
}

// playedServers offers wrapped servers whose calls are played.
func playedServers(t *testing.T, p *played, servers ...catalog.Server) *Server {
	t.Helper()
	asker := NewAsker()
	turns := turn.New(turn.Config{Start: p.start, NoStatus: true, Interactor: asker, Tool: func(name string) (turn.Tool, bool) {
		return turn.Tool{Name: name, Request: supervisor.Request{Name: name}, Repeatable: true}, true
	}})
	t.Cleanup(turns.Close)
	s, err := New(Config{
		Turns: turns, Asker: asker,
		Servers: func() []catalog.Server {
			if p.listed() {
				return servers
			}
			return nil
		},
		Renew: func(context.Context, string) error { return nil },
		Tools: func(ctx context.Context) ([]catalog.Tool, []error) {
			if p.listing != nil {
				select {
				case <-p.listing:
				case <-ctx.Done():
				}
			}
			return nil, nil
		},
		Access: func(name string) access.Identity {
			of := map[string][]string{"uid 1": nil, "uid 2": {"b:*/*"}}
			return access.Identity{Name: name, Roles: []access.Role{access.Admin}, Tools: of[name]}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
