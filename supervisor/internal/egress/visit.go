package egress

import (
	"cmp"
	"context"
	"strconv"

	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Arrive counts for one more call of a kept process.
func (n *session) Arrive(_ context.Context, _ *prepare.Prepared, l process.Listener, _ func()) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.named++
	v := &visit{name: strconv.Itoa(n.named)}
	n.visits[l] = v
	n.overlap()
	if n.ended != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	_ = n.relay.client.Begin(ctx, n.id, v.name, !v.shared) // if this fails, so does its report, which says why
	return nil
}

// visit is a call's time at a process that several may have.
type visit struct {
	name   string // as the relay knows it; empty for the process's first call
	shared bool   // another call was there meanwhile
}

// overlap notes for all calls that are there now that they are not alone. The session
// is locked.
func (n *session) overlap() {
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
func (n *session) part(l process.Listener) *visit {
	v := n.visits[l]
	delete(n.visits, l)
	if v == nil {
		v, n.first = n.first, nil
	}
	return cmp.Or(v, &visit{}) // without one it is a bug, and no reason to lose the result
}
