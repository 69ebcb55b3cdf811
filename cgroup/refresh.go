package cgroup

import (
	"fmt"
	"os"
	"strconv"
)

// Refresh moves this process to a new cgroup2 leaf beside our directory.
//
// It solves one problem: if cgroup.kill was ever written to our own cgroup before
// this process entered it, newer kernels kill each child that the process clones
// into another group at birth (they compare the kill counts of the two cgroups). No
// file shows that, only a real child does: if one dies of SIGKILL before its first
// sign of life and nobody killed its group, call Refresh and retry once in a new
// group. Moving takes milliseconds.
func (r *Root) Refresh() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrRemoved
	}
	if r.mode == ModeNone {
		return errNone
	}
	err := fillLeaf(r.v2.base, func(leaf *dir) error {
		r.log.Debug("moving to a fresh cgroup", "path", leaf.path)
		return leaf.write("cgroup.procs", strconv.Itoa(os.Getpid()))
	})
	if err != nil {
		return fmt.Errorf("cannot move to a fresh cgroup: %w", err)
	}
	return nil
}
