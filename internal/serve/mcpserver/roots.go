package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"context"
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// rooted is an entry whose kept server has asked clients for their roots.
type rooted struct {
	// by are the sessions that were asked: what others say of their roots is not the
	// server's affair.
	by map[*session]bool
	// from is whose roots have changed last.
	from string
	again
}

// askedRoots notes that the server of a call asks the call's client for them.
func (g *gateway) askedRoots(c *call) {
	server := c.origin()
	if !g.keeps(server.entry) || c.session.loose { // who has no session announces nothing
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rooted[server] == nil {
		g.rooted[server] = &rooted{by: map[*session]bool{}}
	}
	g.rooted[server].by[c.session] = true
}

// forgetRoots forgets a session that has ended.
func (g *gateway) forgetRoots(of *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for server, r := range g.rooted {
		if delete(r.by, of); len(r.by) == 0 && !r.runs {
			delete(g.rooted, server)
		}
	}
}

// rootsChanged tells kept servers that have asked a client for its roots that there are
// others, one at a time: those changes that come meanwhile are announced once.
func (g *gateway) rootsChanged(_ context.Context, r *mcpsdk.RootsListChangedRequest) {
	of := g.s.knownOf(r.Session).session
	g.mu.Lock()
	defer g.mu.Unlock()
	for server, asked := range g.rooted {
		if !asked.by[of] {
			continue
		}
		asked.from = of.peer.Identity
		if asked.begin() {
			g.s.soon(func() { g.tellRoots(server.entry, asked) })
		}
	}
}

func (g *gateway) tellRoots(entry string, r *rooted) {
	for more := true; more; {
		g.mu.Lock()
		from := r.from
		g.mu.Unlock()
		if _, err := g.inNameOf(from, entry, catalog.RootsChanged, json.RawMessage("{}"), nil); err != nil {
			g.s.config.Logger.Warn("a server does not hear of other roots", "server", entry, "why", err)
		}
		more = g.goesOn(&r.again)
	}
}
