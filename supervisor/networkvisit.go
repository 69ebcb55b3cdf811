package supervisor

import (
	"cmp"
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// unserved is the network of a process that waits for its call: nothing that it asks
// for is answered before.
type unserved struct {
	sockets *sandbox.Sockets
	taken   atomic.Bool
}

var _ process.Network = (*unserved)(nil)

// End closes the sockets, unless a call has them served.
func (u *unserved) End(time.Time, bool) *api.Network {
	if !u.taken.Swap(true) {
		u.sockets.Close()
	}
	return nil
}

// arrive has the relay serve a call that has come to a process, or count for it.
func (s *Supervisor) arrive(ctx context.Context, prepared *prepare.Prepared, c *call.Call, g *kept.Guest) error {
	switch n := g.Network().(type) {
	case *unserved:
		if n.taken.Swap(true) {
			return nil // it ends
		}
		opened, err := s.serveNetwork(ctx, prepared, g.Process, n.sockets, c.Launching)
		if err != nil {
			return err
		}
		return opened(ctx)
	case *netSession:
		n.begin(c)
	}
	return nil
}

// begin counts for one more call of a kept process.
func (n *netSession) begin(c *call.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.named++
	v := &visit{name: strconv.Itoa(n.named)}
	n.visits[c] = v
	n.overlap()
	if n.ended != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	_ = n.relay.client.Begin(ctx, n.id, v.name, !v.shared) // if this fails, so does its report, which says why
}

// visit is a call's time at a process that several may have.
type visit struct {
	name   string // as the relay knows it; empty for the process's first call
	shared bool   // another call was there meanwhile
}

// overlap notes for all calls that are there now that they are not alone. The session
// is locked.
func (n *netSession) overlap() {
	there := make([]*visit, 0, len(n.visits)+1)
	if n.first != nil {
		there = append(there, n.first)
	}
	for _, v := range n.visits {
		there = append(there, v)
	}
	for _, v := range there {
		v.shared = v.shared || len(there) > 1
	}
}

// part ends a call's visit. The session is locked.
func (n *netSession) part(c *call.Call) *visit {
	v := n.visits[c]
	delete(n.visits, c)
	if v == nil {
		v, n.first = n.first, nil
	}
	v = cmp.Or(v, &visit{}) // a bug, and no reason to lose the result
	return v
}
