package cgroup

import "time"

// maxLift bounds the time for which the CPU quota of all groups together is
// lifted: what dies needs milliseconds, and the others use it meanwhile.
const maxLift = time.Second

// lift is of the total CPU quota, while groups die. It is guarded by totalsMu.
type lift struct {
	on  bool
	end *time.Timer // restores the quota, or tries so again
}

// liftTotal takes the total CPU quota away, under which even SIGKILL can take
// seconds, until restoreTotal or for maxLift.
func (r *Root) liftTotal() error {
	r.totalsMu.Lock()
	defer r.totalsMu.Unlock()
	if r.totals.CPUPercent <= 0 || r.lift.on {
		return nil
	}
	if err := r.apply("", r.layout.undo(Limits{CPUPercent: r.totals.CPUPercent}, ctrlCPU)); err != nil {
		return err
	}
	r.lift.on = true
	r.lift.end = time.AfterFunc(maxLift, r.restoreLate)
	return nil
}

// restoreTotal puts it back. If that fails, as on cgroup v1 while a group has more
// than all may have together, it is tried again.
func (r *Root) restoreTotal() error {
	r.totalsMu.Lock()
	defer r.totalsMu.Unlock()
	if !r.lift.on {
		return nil
	}
	writes, err := r.layout.plan(Limits{CPUPercent: r.totals.CPUPercent})
	if err == nil {
		err = r.apply("", writes)
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
		r.log.Warn("cannot restore the CPU quota of all calls together: trying again", "error", err)
	}
}
