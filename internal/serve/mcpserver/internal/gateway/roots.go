package gateway

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"context"
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// rooted is an entry whose kept server has asked clients for their roots.
type rooted struct {
	// by are the sessions that were asked, with their identities: what others say of their
	// roots is not the server's affair.
	by map[*mcpsdk.ServerSession]string
	// from is whose roots have changed last.
	from string
	coalescer
}

// AskedRoots notes that a server asks a session for its roots, in a call of an identity.
func (g *Gateway) AskedRoots(server Origin, by *mcpsdk.ServerSession, identity string) {
	if !g.keeps(server.Entry) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.host.Track(by)
	if g.rooted[server] == nil {
		g.rooted[server] = &rooted{by: map[*mcpsdk.ServerSession]string{}}
	}
	g.rooted[server].by[by] = identity
}

// forgetRoots forgets a session that has ended.
func (g *Gateway) forgetRoots(of *mcpsdk.ServerSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for server, r := range g.rooted {
		if delete(r.by, of); len(r.by) == 0 && !r.running {
			delete(g.rooted, server)
		}
	}
}

// rootsChanged tells kept servers that have asked a client for its roots that there are
// others, one at a time: those changes that come meanwhile are announced once.
func (g *Gateway) rootsChanged(_ context.Context, r *mcpsdk.RootsListChangedRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for server, asked := range g.rooted {
		identity, is := asked.by[r.Session]
		if !is {
			continue
		}
		asked.from = identity
		g.coalesce(&asked.coalescer, func() { g.tellRoots(server.Entry, asked) })
	}
}

func (g *Gateway) tellRoots(entry string, r *rooted) {
	g.mu.Lock()
	from := r.from
	g.mu.Unlock()
	if _, err := g.callFor(from, entry, catalog.RootsChanged, json.RawMessage("{}"), nil); err != nil {
		g.host.Logger.Warn("a server does not hear of other roots", "server", entry, "why", err)
	}
}
