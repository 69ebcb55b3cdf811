package cgroup

import (
	"fmt"
	"strings"
)

// Tasks counts the processes and threads in the group.
func (g *Group) Tasks() (n int64, err error) {
	err = g.use(func() error {
		h := g.root.limited[ctrlPids]
		if h == nil {
			return errNoPids()
		}
		text, err := h.tools.read(g.leaf + "/pids.current")
		n = parseInt(strings.TrimSpace(text))
		return err
	})
	return n, err
}

// LimitTasks changes the pids limit of a group that was made with one. Existing
// tasks above the limit stay. It must not be called during Start or Fork.
func (g *Group) LimitTasks(n int64) error {
	if n < 1 || g.limits.Pids == 0 {
		return fmt.Errorf("cannot limit group %s to %d tasks: give 1 or more, and make the group with a limit", g.leaf, n)
	}
	return g.use(func() error {
		h := g.root.limited[ctrlPids]
		if h == nil {
			return errNoPids()
		}
		if err := h.apply(g.leaf+"/", write{ctrlPids, "pids.max", itoa(n)}); err != nil {
			return err
		}
		g.tasks.Store(n)
		return nil
	})
}

// errNoPids says that tasks are not counted here.
func errNoPids() error {
	return &ControllerError{Controller: ctrlPids, Limit: "Pids", Remedy: ControllerRemedy(ctrlPids)}
}

// pidsLimit is the limit that is in force now, 0 for none.
func (g *Group) pidsLimit() int64 {
	if n := g.tasks.Load(); n > 0 {
		return n
	}
	return g.limits.Pids
}
