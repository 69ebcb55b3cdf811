package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/net/netutil"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/turn"
)

// Bounds of what one call may begin: turns that are active at once, and in all; and
// of its connections.
const (
	maxChildren    = 16
	maxAllChildren = 1024
	maxChildConns  = 32
)

// children are the way of one call to the API: turns below its own, and nothing
// else.
type children struct {
	of    api.Place
	owner string // of the turn that it is of

	mu    sync.Mutex
	begun map[string]*turn.Turn // nil once the call ends
}

type childrenKey struct{}

// childrenOf are the children whose way a request has come through; nil for all others.
func childrenOf(ctx context.Context) *children {
	c, _ := ctx.Value(childrenKey{}).(*children)
	return c
}

// ServeChild serves a call of a turn at l: it can begin turns below its own, make
// calls in them, watch and end them, and list the tools. Once l is closed, what it
// has begun is aborted and ended before ServeChild returns. It is for turn.Config.
func (s *Server) ServeChild(l net.Listener, of api.Place) {
	c := &children{of: of, begun: map[string]*turn.Turn{}}
	if t, ok := s.config.Turns.Turn(of.TurnID); ok {
		c.owner = t.Owner()
	}
	server := s.HTTP()
	withConnection := server.ConnContext
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(withConnection(ctx, conn), childrenKey{}, c)
	}
	server.Handler = s.guarded(s.muxOf(func(r route) bool { return r.child }, s.nothingElse))
	_ = server.Serve(netutil.LimitListener(l, maxChildConns))
	c.end()
	_ = server.Close()
}

// nothingElse answers what a call may not ask for.
func (s *Server) nothingElse(w http.ResponseWriter, r *http.Request) {
	fail(w, refuse(codeForbidden, "a call may not use "+printable(r.URL.Path), "use turns of its own: /api/turns"))
}

// caller is the call, as it goes on record.
func (c *children) caller() caller {
	return caller{Identity: access.Identity{Name: "call " + c.of.CallID + " of turn " + c.of.TurnID, Roles: []access.Role{access.Call}}}
}

// place makes a turn one below the call's own.
func (c *children) place(spec *api.TurnSpec) error {
	switch {
	case c == nil:
		return nil
	case spec.TurnID != "":
		return refuse(codeForbidden, "a call cannot name its turns", "leave out turnId")
	case spec.ParentTurnID != "" && spec.ParentTurnID != c.of.TurnID && c.turn(spec.ParentTurnID) == nil:
		return refuse(codeNotFound, "the turn "+printable(spec.ParentTurnID)+" is not one of this call's", "leave out parentTurnId")
	case spec.SessionID != "" && spec.SessionID != c.of.SessionID:
		return refuse(codeForbidden, "a call's turns belong to its own session", "leave out sessionId")
	}
	spec.ParentTurnID = cmp.Or(spec.ParentTurnID, c.of.TurnID)
	spec.AgentID = cmp.Or(spec.AgentID, c.of.AgentID)
	spec.SessionID = c.of.SessionID
	return nil
}

// add takes a turn that has begun; an error ends it.
func (c *children) add(t *turn.Turn) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	active := 0
	for _, one := range c.begun {
		if !isOver(one) {
			active++
		}
	}
	switch {
	case c.begun == nil:
		return refuse(codeUnready, "the call has ended", "begin no more turns")
	case active >= maxChildren || len(c.begun) >= maxAllChildren:
		return refuse(codeBusy, "the call has begun too many turns", fmt.Sprintf("end some first: %d may be active, and %d in all", maxChildren, maxAllChildren))
	}
	c.begun[t.ID()] = t
	return nil
}

// turn finds one of the call's turns; nil if it is another's.
func (c *children) turn(id string) *turn.Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[id]
}

// shows says whether a call may know of a tool: as the turn that it is of.
func (c *children) shows(s *Server, tool string) bool {
	if c == nil {
		return true
	}
	t, ok := s.config.Turns.Turn(c.of.TurnID)
	return ok && t.Shows(tool)
}

// mayUse says whether a request may speak of a turn: a call only of its own.
func (c *children) mayUse(id string) bool { return c == nil || id == "" || c.turn(id) != nil }

// end ends all that the call has begun.
func (c *children) end() {
	c.mu.Lock()
	begun := c.begun
	c.begun = nil
	c.mu.Unlock()
	var ending sync.WaitGroup
	for _, t := range begun {
		ending.Go(func() {
			t.Abort(api.ReasonParent)
			t.End()
		})
	}
	ending.Wait()
}
