package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/serve/mcpserver"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// mcpPath is where clients of the Model Context Protocol connect, under the
// rules of the HTTP API.
const mcpPath = "/mcp"

// mcp is the MCP server. It is made for the first client, since making it describes every
// tool.
type mcp struct {
	asker  *mcpserver.Asker
	config func() mcpserver.Config
	// retry describes what could not be described at first, and calls recovered after each
	// success, until ctx ends.
	retry func(ctx context.Context, recovered func())
	// describe describes every tool, or gives up when ctx ends.
	describe func(ctx context.Context)

	// known are the identities that have connected, in their latest form, by name.
	known sync.Map

	mu       sync.Mutex
	server   *mcpserver.Server
	draining bool
	giveUp   context.CancelFunc // ends the retry under way; nil means none
	retrying sync.WaitGroup
}

func (d *daemon) mcpConfig() mcpserver.Config {
	return mcpserver.Config{
		Turns: d.turns, Asker: d.mcp.asker, OthersAnswer: true, Version: d.options.Version, Logger: d.logger.Named("mcp"),
		Parallel: d.options.Loaded.Turn.Parallel, Search: d.options.Loaded.MCP.Search, Health: func() any { return d.host.Health() },
		Tools: func(ctx context.Context) ([]catalog.Tool, []error) { return d.tools.current.Load().catalog.All(ctx) },
		Find: func(ctx context.Context, name string) (catalog.Tool, error) {
			return d.tools.current.Load().catalog.Find(ctx, name)
		},
		Budget: func() budget.TurnSpec { return d.tools.loaded().Turn.Budget },
		Access: d.mcp.identity, Claim: d.claim,
		Share: func(identity string) string { return d.shareOf(d.book().Current(d.mcp.identity(identity))).Process() },
		Timeout: func(client string) time.Duration {
			settings := d.tools.loaded().MCP
			return cmp.Or(settings.Clients[client], settings.ClientTimeout)
		},
		// Set even without MCP servers: a reload may add the first one.
		Servers: func() []catalog.Server { return d.tools.current.Load().catalog.Servers() },
		Renew:   func(ctx context.Context, entry string) error { return d.tools.current.Load().catalog.Renew(ctx, entry) },
	}
}

// notice passes on what a wrapped server announces, if there is a client.
func (m *mcp) notice(entry, share, method string, params json.RawMessage) {
	if server := m.made(); server != nil {
		server.Notice(entry, share, method, params)
	}
}

// ServeHTTP implements http.Handler.
func (m *mcp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	server, err := m.open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	who := httpapi.CallerOf(r.Context())
	m.known.Store(who.Name, who.Identity)
	peer := mcpserver.Peer{Identity: who.Name, Connection: who.Connection}
	ctx := mcpserver.WithDecoding(mcpserver.WithPeer(r.Context(), peer), who.Decoding)
	server.Handler().ServeHTTP(w, r.WithContext(ctx))
}

// identity returns the identity that has connected under this name, or the zero one.
func (m *mcp) identity(name string) access.Identity {
	who, _ := m.known.Load(name)
	i, _ := who.(access.Identity)
	return i
}

func (m *mcp) open() (*mcpserver.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		server, err := mcpserver.New(m.config())
		if err != nil {
			return nil, err
		}
		m.server = server
		if m.draining {
			server.Drain()
		}
		m.tryAgain(func(context.Context) {}) // the server lists them by itself
	}
	return m.server, nil
}

// tryAgain offers missing tools as soon as they can be described, after first: a client that
// lists tools only once would never learn of them. m is locked.
func (m *mcp) tryAgain(first func(ctx context.Context)) {
	m.endRetry()
	if m.draining {
		return
	}
	var ctx context.Context
	ctx, m.giveUp = context.WithCancel(context.Background())
	server := m.server
	m.retrying.Go(func() {
		first(ctx)
		m.retry(ctx, func() { server.Reload(ctx) })
	})
}

func (m *mcp) endRetry() {
	if m.giveUp != nil {
		m.giveUp()
	}
}

// made returns the server, nil before the first client.
func (m *mcp) made() *mcpserver.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// reload notifies clients of the present tools. What takes longer to describe than ctx allows
// is offered as it was, and anew when it is described.
func (m *mcp) reload(ctx context.Context) {
	s := m.made()
	if s == nil {
		return
	}
	listed := make(chan struct{})
	m.mu.Lock()
	draining := m.draining
	m.tryAgain(func(ctx context.Context) {
		defer close(listed)
		if m.describe(ctx); ctx.Err() == nil {
			s.Reload(ctx)
		}
	})
	m.mu.Unlock()
	if draining {
		return
	}
	select {
	case <-listed:
	case <-ctx.Done():
		s.Reload(ctx)
	}
}

// drain takes no more calls.
func (m *mcp) drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
	m.endRetry()
	if m.server != nil {
		m.server.Drain()
	}
}

// close ends the calls and sessions of its clients, after drain.
func (m *mcp) close() {
	m.retrying.Wait()
	if s := m.made(); s != nil {
		s.Close()
	}
}
