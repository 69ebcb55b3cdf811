package api

import "time"

// Marks are moments in the life of a call; those that it did not reach are zero.
// They have monotonic clock readings, so differences stay exact if the clock is set.
type Marks struct {
	// The call asked for a slot, got one, and its tool began to work.
	Queued, Admitted, Ready time.Time
	// Spawned is when the call's cgroup had a launcher in it, Executed when the
	// tool's own program began in its sandbox. Both are zero if the process was
	// started before the call.
	Spawned, Executed time.Time
	// Stop is when the end began: the tool ended, or the kill ladder's cause occurred
	// (such as the deadline). Kill is the kill of the cgroup, which also cleans up
	// after a call that ended by itself. Empty is when no process was left, or the
	// supervisor gave up those that were; Done is when the result was complete.
	Stop, Kill, Empty, Done time.Time
}

// Phase is an interval in the life of a call.
type Phase struct {
	Name string
	// Of is the name of the enclosing phase; empty for a phase of the call itself.
	Of       string
	From, To time.Time
}

// Names of a call's phases. A last one, finish, reads the remaining output and makes
// the result. PhaseStart consists of birth (cgroup, pipes, launcher), sandbox
// (namespaces, mounts, filter) and handshake (the tool's program, until it answers).
const (
	PhaseQueue = "queue" // waiting for a slot
	PhaseStart = "start" // until the tool runs
	PhaseRun   = "run"   // the tool's own work
	PhaseKill  = "kill"  // until no process is left: the kill ladder, or the cleanup after the tool's end
)

// Phases returns the phases that the call has had, in order, each followed by its parts.
func (m Marks) Phases() (list []Phase) {
	add := func(name, of string, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() {
			list = append(list, Phase{name, of, from, to})
		}
	}
	started := first(m.Ready, m.Stop)
	add(PhaseQueue, "", m.Queued, first(m.Admitted, m.Done))
	add(PhaseStart, "", m.Admitted, started)
	if !m.Spawned.IsZero() {
		add("birth", PhaseStart, m.Admitted, m.Spawned)
		add("sandbox", PhaseStart, m.Spawned, first(m.Executed, started))
		add("handshake", PhaseStart, m.Executed, started)
	}
	add(PhaseRun, "", m.Ready, m.Stop)
	add(PhaseKill, "", m.Stop, m.Empty)
	add("finish", "", m.Empty, m.Done)
	return list
}

// first returns a, or b if a is zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}
