package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// maxOpened bounds the addresses that one session was asked to open and that no server
// has called complete; the oldest makes room.
const maxOpened = 64

// maxElicitationIDBytes bounds the id of one.
const maxElicitationIDBytes = 256

// opened is an address that a client was asked to open, by its server's own id.
type opened struct {
	server Origin
	id     string
	// request is the context of the client's request that it was asked in: by it a
	// notification finds its stream, as long as that is there.
	request context.Context
}

func (o opened) is(server Origin, id string) bool { return o.server == server && o.id == id }

// AskedToOpen notes that a session is asked to open an address of a server. An id
// is of the session that was asked last.
func (g *Gateway) AskedToOpen(ctx context.Context, by *mcpsdk.ServerSession, server Origin, id string) {
	if id == "" || len(id) > maxElicitationIDBytes {
		return
	}
	g.takeOpened(server, id)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.host.Track(by)
	list := append(g.opened[by], opened{server, id, ctx})
	g.opened[by] = list[max(0, len(list)-maxOpened):]
}

// takeOpened forgets an address, and gives the session that was asked to open it; nil if
// nobody was.
func (g *Gateway) takeOpened(server Origin, id string) (by *mcpsdk.ServerSession, request context.Context) {
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
func (g *Gateway) completed(server Origin, params json.RawMessage) {
	p := &mcpsdk.ElicitationCompleteParams{ElicitationID: object.Text(params, "elicitationId"), Meta: verbatim.Meta(params)}
	by, request := g.takeOpened(server, p.ElicitationID)
	if by == nil {
		return
	}
	g.mailboxOf(by).put(letter{about: mcpcall.ElicitationComplete + " " + p.ElicitationID, bytes: len(params), send: func() {
		ctx := context.Background()
		if request.Err() == nil {
			ctx = context.WithoutCancel(request)
		}
		_ = by.NotifyElicitationComplete(ctx, p)
	}})
}

// Failure is the error of a wrapped server that a request is answered with, or nil. In one
// kind are addresses that the client is to open before it asks again; MCP has it no
// more since 2026-07-28, and such a client reads the addresses in the result.
func (g *Gateway) Failure(ctx context.Context, r *mcpsdk.CallToolRequest, entry string, result *api.Result) error {
	e := serverError(result)
	if e == nil || e.Code == mcpsdk.CodeURLElicitationRequired && r.ProtocolVersion() >= MultiRound {
		return nil
	}
	var data struct {
		Elicitations []struct{ ElicitationID string }
	}
	if e.Code == mcpsdk.CodeURLElicitationRequired && json.Unmarshal(e.Data, &data) == nil {
		for _, one := range data.Elicitations[:min(len(data.Elicitations), maxOpened)] {
			g.AskedToOpen(ctx, r.Session, g.origin(ctx, entry), one.ElicitationID)
		}
	}
	return e
}

// serverError is the error that a wrapped server has answered with itself.
func serverError(r *api.Result) *jsonrpc.Error {
	if r.ToolError == nil || len(r.ToolError.RPC) == 0 || r.Status != api.StatusToolError && r.Status != api.StatusInvalidArgs {
		return nil
	}
	var e jsonrpc.Error
	if json.Unmarshal(r.ToolError.RPC, &e) != nil {
		return nil
	}
	return &e
}
