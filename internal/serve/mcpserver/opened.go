package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// maxOpened bounds the addresses that one session was asked to open and that no server
// has called complete; the oldest makes room.
const maxOpened = 64

// opened is an address that a client was asked to open, by its server's own id.
type opened struct {
	server origin
	id     string
	// request is the context of the client's request that it was asked in: by it a
	// notification finds its stream, as long as that is there.
	request context.Context
}

func (o opened) is(server origin, id string) bool { return o.server == server && o.id == id }

// asksToOpen notes that a session is asked to open an address of a server. An id
// is of the session that was asked last.
func (g *gateway) asksToOpen(ctx context.Context, by *mcpsdk.ServerSession, server origin, id string) {
	if id == "" || len(id) > maxIDBytes {
		return
	}
	g.takeOpened(server, id)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s.about(by, func(*known) {}) // whose end forgets it
	list := append(g.opened[by], opened{server, id, ctx})
	g.opened[by] = list[max(0, len(list)-maxOpened):]
}

// withID is a request to open an address with an id, which servers of 2026-07-28 have none
// of and clients of before demand.
func withID(p *mcpsdk.ElicitParams) *mcpsdk.ElicitParams {
	if p.Mode != "url" || p.ElicitationID != "" {
		return p
	}
	own := *p
	own.ElicitationID = rand.Text()
	return &own
}

func (g *gateway) forgetOpened(by *mcpsdk.ServerSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.opened, by)
}

// takeOpened forgets an address, and gives the session that was asked to open it; nil if
// nobody was.
func (g *gateway) takeOpened(server origin, id string) (by *mcpsdk.ServerSession, request context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for one, list := range g.opened {
		i := slices.IndexFunc(list, func(o opened) bool { return o.is(server, id) })
		if i < 0 {
			continue
		}
		request = list[i].request
		g.opened[one] = slices.Delete(list, i, i+1)
		return one, request
	}
	return nil, nil
}

// completed tells the client that was asked to open an address, and no other, what its
// server says: that it is done there.
func (g *gateway) completed(server origin, params json.RawMessage) {
	p := &mcpsdk.ElicitationCompleteParams{ElicitationID: object.Text(params, "elicitationId"), Meta: verbatim.Meta(params)}
	by, request := g.takeOpened(server, p.ElicitationID)
	if by == nil {
		return
	}
	g.s.mailboxOf(by).put(letter{about: mcpcall.ElicitationComplete + " " + p.ElicitationID, bytes: len(params), send: func() {
		ctx := context.Background()
		if request.Err() == nil {
			ctx = context.WithoutCancel(request)
		}
		_ = by.NotifyElicitationComplete(ctx, p)
	}})
}

// failureOf is the error of a wrapped server that a request is answered with, if it is.
// In one kind are addresses that the client is to open before it asks again; MCP has it no
// more since 2026-07-28, and such a client reads the addresses in the result.
func (s *Server) failureOf(ctx context.Context, r *mcpsdk.CallToolRequest, entry string, result *api.Result) error {
	e := rpcOf(result)
	if e == nil || e.Code == mcpsdk.CodeURLElicitationRequired && r.ProtocolVersion() >= multiRound {
		return nil
	}
	var data struct {
		Elicitations []struct{ ElicitationID string }
	}
	if e.Code == mcpsdk.CodeURLElicitationRequired && json.Unmarshal(e.Data, &data) == nil {
		for _, one := range data.Elicitations[:min(len(data.Elicitations), maxOpened)] {
			s.gateway.asksToOpen(ctx, r.Session, s.originFor(entry, peerOf(ctx).Identity), one.ElicitationID)
		}
	}
	return e
}
