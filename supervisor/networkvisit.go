package supervisor

import "github.com/toolhost/toolhost/supervisor/internal/call"

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
	if v == nil {
		v = &visit{} // a bug, and no reason to lose the result
	}
	return v
}
