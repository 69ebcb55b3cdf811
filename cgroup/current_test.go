package cgroup

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func TestCurrent(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "current", Limits{MemoryBytes: 128 << 20, Pids: 64})
		before, err := g.Current()
		if err != nil || before.Pids != 0 {
			t.Errorf("an empty group uses %+v (%v)", before, err)
		}
		spawn(t, g, "allocate", "40").expect("ready")
		wait.Until(t, "the group uses what its child does", func() bool {
			now, err := g.Current()
			return err == nil && now.CPU > before.CPU && now.MemoryBytes > 30<<20 && now.Pids > 0
		})
		finish(t, g)
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
		if now, err := g.Current(); !errors.Is(err, ErrRemoved) {
			t.Errorf("a removed group uses %+v (%v)", now, err)
		}
	})
}
