package turn

import (
	"math"
	"slices"
)

// unraised are questions that wait for the one before people. Those whether calls may
// begin are in the order of the calls.
type unraised []*pending

func (u *unraised) add(p *pending) {
	at := slices.IndexFunc(*u, func(other *pending) bool { return p.nth > 0 && p.nth < other.nth })
	if at < 0 {
		at = len(*u)
	}
	*u = slices.Insert(*u, at, p)
}

// take takes the first one that can be raised, or returns nil.
func (u *unraised) take(b *batch) *pending {
	sure := sureOf(b)
	at := slices.IndexFunc(*u, func(p *pending) bool { return p.nth <= sure })
	if at < 0 {
		return nil
	}
	p := (*u)[at]
	*u = slices.Delete(*u, at, at+1)
	return p
}

// sureOf is the number of the last call of a batch, if there is one, before which no
// other may still need a question.
func sureOf(b *batch) int {
	if b == nil {
		return math.MaxInt
	}
	at := slices.IndexFunc(b.entries, func(e *entry) bool { return e.stage == stageDescribing })
	if at < 0 {
		return math.MaxInt
	}
	return at + 1
}

// raiseNext raises what has waited for the question before it; one for which nobody waits
// comes last.
func (t *Turn) raiseNext() {
	for !t.over && !t.raised() {
		if back := firstAside(t.pendings); back != nil && (!back.stays || len(t.unraised) == 0) {
			back.comeBack(t)
			continue
		}
		p := t.unraised.take(t.batch)
		if p == nil {
			return
		}
		if t.pendings[p.ID] == p {
			t.raise(p)
		}
	}
}
