package cgroup

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Weights of the directory for all tools: twice as much as any other group has,
// unless Totals says something else, and eight times as much for a moment while a
// group must die and, on cgroup v1, while groups start. The supervisor has more where
// it is in a cgroup of its own, so that its timers stay exact and tools cannot keep it
// from reading their output; on cgroup v1 each of its threads weighs as much as a group.
const (
	toolsWeight      = 2 * defaultWeight
	boostWeight      = 8 * defaultWeight
	supervisorWeight = 4 * defaultWeight
)

// Bounds are lifted for maxLift at a time, with a rest as long as that between:
// where something dies all the time, as under attack, they hold for half of it,
// and no death waits for longer than a rest.
const maxLift = 200 * time.Millisecond

// bounds are what groups below one directory may have together: all groups, or
// those of one Share.
type bounds struct {
	root   *Root
	prefix string // of the directory's files, below our directory: "" or "s-name/"

	boostedMu sync.Mutex
	boosted   int // boosted groups

	mu     sync.Mutex
	limits Limits
	weight int64 // of the CPU
	lift   lift
	favour favour
	over   bool // the directory is gone, or about to be
}

// lift is of bounds while groups die. It is guarded by their mu.
type lift struct {
	on    bool
	again bool // liftAgain is due
	ended time.Time
	rest  time.Duration // after it: maxLift, but in tests
	end   *time.Timer   // restores the bounds, or tries so again
}

func newBounds(r *Root, prefix string, weight int64) *bounds {
	return &bounds{root: r, prefix: prefix, weight: weight, lift: lift{rest: maxLift}}
}

// set replaces the limits; exactly: no start changes the weight.
func (b *bounds) set(l Limits, weight int64, exactly bool) error {
	writes, err := b.plan(l)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.apply(b.root.layout.undo(b.limits, allControllers...)); err != nil {
		return err
	}
	if b.favour.never = exactly; b.favour.on && !exactly {
		weight = boostWeight
	}
	b.limits, b.weight = l, weight
	b.settle()
	return b.apply(append(writes, b.root.layout.weight(weight)...))
}

// weigh sets the weight, at the latest when the bounds are restored.
func (b *bounds) weigh(weight int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.weighNow(weight)
}

// weighNow is weigh. The caller holds mu.
func (b *bounds) weighNow(weight int64) error {
	if b.weight = weight; b.lift.on {
		return nil
	}
	return b.apply(b.root.layout.weight(weight))
}

// plan turns the limits into writes. An OOM within bounds kills one group, not all.
func (b *bounds) plan(l Limits) ([]write, error) {
	writes, err := b.root.plan(l)
	return slices.DeleteFunc(writes, func(w write) bool { return w.file == fileOOMGroup }), err
}

// within is a CPU quota below this one: cgroup v1 refuses a greater one.
func (b *bounds) within(percent int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.CPUPercent == 0 || percent == 0 {
		return percent
	}
	return min(percent, b.limits.CPUPercent)
}

func (b *bounds) apply(writes []write) error { return b.root.apply(b.prefix, writes) }

// boost counts the boosted groups, and lifts what bounds all of them when the
// first comes, until the last goes.
func (b *bounds) boost(by int) error {
	b.boostedMu.Lock()
	defer b.boostedMu.Unlock()
	before := b.boosted
	b.boosted += by
	switch {
	case before == 0 && b.boosted == 1:
		return b.raise()
	case before == 1 && b.boosted == 0:
		return b.restore()
	}
	return nil
}

// raise takes the CPU quota away, under which even SIGKILL can take seconds, and
// gives all groups more of the CPU, until restore or for maxLift.
func (b *bounds) raise() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.lift.on || b.lift.again {
		return nil
	}
	if wait := b.lift.rest - time.Since(b.lift.ended); wait > 0 {
		b.lift.again = true
		time.AfterFunc(wait, b.liftAgain)
		return nil
	}
	layout := b.root.layout
	if err := b.apply(append(layout.undo(Limits{CPUPercent: b.limits.CPUPercent}, ctrlCPU), layout.weight(max(boostWeight, b.weight))...)); err != nil {
		return err
	}
	b.lift.on = true
	b.lift.end = time.AfterFunc(maxLift, b.restoreLate)
	return nil
}

// restore puts them back. If that fails, as on cgroup v1 while a group has more
// than all may have together, it is tried again.
func (b *bounds) restore() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || !b.lift.on {
		return nil
	}
	writes, err := b.plan(Limits{CPUPercent: b.limits.CPUPercent})
	if err == nil {
		err = b.apply(append(writes, b.root.layout.weight(b.weight)...))
	}
	if err != nil {
		b.lift.end.Reset(maxLift)
		return err
	}
	b.settle()
	return nil
}

// settle: the quota in force is the one that is wanted. The caller holds mu.
func (b *bounds) settle() {
	if b.lift.on {
		b.lift.end.Stop()
		b.lift.ended = time.Now()
	}
	b.lift.on = false
}

// end is for a directory that goes.
func (b *bounds) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.settle()
}

func (b *bounds) restoreLate() {
	b.root.mu.RLock()
	defer b.root.mu.RUnlock()
	if b.root.closed {
		return
	}
	if err := b.restore(); err != nil {
		b.root.log.Warn("cannot restore the CPU bounds of calls together: trying again", "error", err)
		return
	}
	b.liftIfBoosted()
}

// liftAgain is for what still dies after a rest.
func (b *bounds) liftAgain() {
	b.root.mu.RLock()
	defer b.root.mu.RUnlock()
	if b.root.closed {
		return
	}
	b.mu.Lock()
	b.lift.again = false
	b.mu.Unlock()
	b.liftIfBoosted()
}

func (b *bounds) liftIfBoosted() {
	b.boostedMu.Lock()
	defer b.boostedMu.Unlock()
	if b.boosted == 0 {
		return
	}
	if err := b.raise(); err != nil {
		b.root.log.Warn("cannot lift the CPU bounds of calls together: what dies may take longer", "error", err)
	}
}

// Totals bounds all groups together, replacing earlier totals; a zero field
// removes that total. In Usage, totals count as limits of an ancestor.
func (r *Root) Totals(l Limits) error {
	if _, err := r.plan(l); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrRemoved
	}
	return r.all.set(l, cmp.Or(l.CPUWeight, toolsWeight), l.CPUWeight != 0)
}
