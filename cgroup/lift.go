package cgroup

import (
	"cmp"
	"time"
)

// Weights of the directory for all tools: as much as any other group has, unless
// Totals says something else, and, for a moment while a group must die, eight
// times as much. The supervisor has more where it is in a cgroup of its own, so
// that its timers stay exact and tools cannot keep it from reading their output.
const (
	toolsWeight      = defaultWeight
	hurryWeight      = 8 * defaultWeight
	supervisorWeight = 4 * defaultWeight
)

// weightOf is what all groups together have.
func weightOf(totals Limits) int64 { return cmp.Or(totals.CPUWeight, toolsWeight) }

// The bounds of all groups together are lifted for maxLift at a time, with a rest
// as long as that between: where something dies all the time, as under attack,
// they hold for half of it, and no death waits for longer than a rest.
const maxLift = 200 * time.Millisecond

// lift is of the bounds of all groups together, while groups die. It is guarded
// by totalsMu.
type lift struct {
	on    bool
	again bool // liftAgain is due
	ended time.Time
	rest  time.Duration // after it: maxLift, but in tests
	end   *time.Timer   // restores the bounds, or tries so again
}

// liftTotal takes the total CPU quota away, under which even SIGKILL can take
// seconds, and gives all groups more of the CPU, until restoreTotal or for maxLift.
func (r *Root) liftTotal() error {
	r.totalsMu.Lock()
	defer r.totalsMu.Unlock()
	if r.lift.on || r.lift.again {
		return nil
	}
	if wait := r.lift.rest - time.Since(r.lift.ended); wait > 0 {
		r.lift.again = true
		time.AfterFunc(wait, r.liftAgain)
		return nil
	}
	writes := append(r.layout.undo(Limits{CPUPercent: r.totals.CPUPercent}, ctrlCPU), r.layout.weight(max(hurryWeight, r.totals.CPUWeight))...)
	if err := r.apply("", writes); err != nil {
		return err
	}
	r.lift.on = true
	r.lift.end = time.AfterFunc(maxLift, r.restoreLate)
	return nil
}

// restoreTotal puts them back. If that fails, as on cgroup v1 while a group has
// more than all may have together, it is tried again.
func (r *Root) restoreTotal() error {
	r.totalsMu.Lock()
	defer r.totalsMu.Unlock()
	if !r.lift.on {
		return nil
	}
	writes, err := r.layout.plan(Limits{CPUPercent: r.totals.CPUPercent})
	if err == nil {
		err = r.apply("", append(writes, r.layout.weight(weightOf(r.totals))...))
	}
	if err != nil {
		r.lift.end.Reset(maxLift)
		return err
	}
	r.settleLift()
	return nil
}

// settleLift: the quota in force is the one that is wanted. The caller holds
// totalsMu.
func (r *Root) settleLift() {
	if r.lift.on {
		r.lift.end.Stop()
		r.lift.ended = time.Now()
	}
	r.lift.on = false
}

func (r *Root) restoreLate() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	if err := r.restoreTotal(); err != nil {
		r.log.Warn("cannot restore the CPU bounds of all calls together: trying again", "error", err)
		return
	}
	r.liftIfHurried()
}

// liftAgain is for what still dies after a rest.
func (r *Root) liftAgain() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	r.totalsMu.Lock()
	r.lift.again = false
	r.totalsMu.Unlock()
	r.liftIfHurried()
}

func (r *Root) liftIfHurried() {
	r.hurriedMu.Lock()
	defer r.hurriedMu.Unlock()
	if r.hurried == 0 {
		return
	}
	if err := r.liftTotal(); err != nil {
		r.log.Warn("cannot lift the CPU bounds of all calls together: what dies may take longer", "error", err)
	}
}
