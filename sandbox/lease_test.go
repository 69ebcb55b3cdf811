package sandbox

import (
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A lease that is over ends all trees that hold it, without the host, and lets nothing
// more start; one that is renewed goes on.
func TestLeaseEndsAllTrees(t *testing.T) {
	w := enter(t)
	lease, err := NewLease("one")
	must(t, err)
	must(t, lease.Renew(time.Hour))
	holds := func(s *Spec) { s.Lease = lease }
	plan := w.plan(Policy{}, Task{})
	calls := []*call{w.start(plan, "tree", nil, holds), w.start(plan, "tree", nil, holds)}
	for _, c := range calls {
		c.line()
	}
	must(t, lease.Renew(0))
	for _, c := range calls {
		c.waitGone()
	}
	late := w.start(plan, "tree", nil, holds)
	must(t, late.err)
	wantError(t, late.Started(wait.Context(t)), "cannot keep the lease")
	must(t, lease.Renew(time.Hour))
	later := w.start(plan, "tree", nil, holds)
	later.line()
	later.Kill()
	later.waitGone()
	must(t, lease.Close())
	if lease.Name() != "one" || (*Lease)(nil).Name() != "" {
		t.Errorf("it is called %q", lease.Name())
	}
}

// A lease may be given up while something starts with it: that holds it, or does not start.
func TestLeaseIsGivenUpDuringAStart(t *testing.T) {
	w := enter(t)
	plan := w.plan(Policy{}, Task{})
	for range 10 {
		lease, err := NewLease("one")
		must(t, err)
		must(t, lease.Renew(time.Hour))
		var closing sync.WaitGroup
		closing.Go(func() { _ = lease.Close() })
		c := w.start(plan, "tree", nil, func(s *Spec) { s.Lease = lease })
		closing.Wait()
		if c.err != nil {
			wantError(t, c.err, "cannot start with a lease")
			continue
		}
		c.line()
		c.Kill()
		c.waitGone()
	}
	lease, err := NewLease("one")
	must(t, err)
	must(t, lease.Close())
	wantError(t, w.start(plan, "tree", nil, func(s *Spec) { s.Lease = lease }).err, "cannot start with a lease")
}

// It is measured by what counts a machine's sleep.
func TestUptime(t *testing.T) {
	first, err := Uptime()
	must(t, err)
	second, err := Uptime()
	must(t, err)
	if first <= 0 || second < first {
		t.Errorf("%s, then %s", first, second)
	}
}
