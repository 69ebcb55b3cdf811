package cgroup

import (
	"errors"

	"github.com/hashicorp/go-hclog"
)

// None returns a Root that does not use cgroups, for hosts that do not allow them. Its
// groups set no limits, count no usage and do not kill: the caller must contain the
// processes by other means, such as a PID namespace, and find out when they are gone.
// The groups list and signal the process that Lead names, and its descendants.
func None() *Root {
	r := &Root{log: hclog.NewNullLogger(), mode: ModeNone}
	r.all = newBounds(r, "", toolsWeight)
	return r
}

// errNone is what only cgroups can do.
var errNone = errors.New("there are no cgroups in use")

// bare is a group of None: to all that needs a cgroup it is removed already.
func (r *Root) bare(name string) *Group {
	return &Group{root: r, leaf: leafPrefix + name, removed: true, kill: -1, events: -1, oomFired: make(chan struct{}, 1)}
}

// Lead names the process that was born into the group. Only groups of None need it:
// their members are the process and its descendants.
func (g *Group) Lead(pid int) {
	if g.root.mode == ModeNone {
		g.tree.Store(&descent{leader: pid, start: startTime(pid)})
	}
}

// members lists the group's processes.
func (g *Group) members() ([]int, error) {
	if g.root.mode != ModeNone {
		return readPids(g.dir)
	}
	if t := g.tree.Load(); t != nil {
		return t.pids()
	}
	return nil, nil
}

// useMembers is use for what needs nothing but members.
func (g *Group) useMembers(f func() error) error {
	if g.root.mode == ModeNone {
		return f()
	}
	return g.use(f)
}
