package api

import "time"

// Marks are moments of a call, zero for those that never came. Differences
// between them are exact where the clock is set meanwhile.
type Marks struct {
	// Queued: it asked for a slot; Admitted: it got one; Ready: its tool ran.
	Queued, Admitted, Ready time.Time
	// Spawned is when its processes had a group and a launcher in it, Executed when the
	// tool's own program began, in its sandbox. Of a kept process both are before
	// the call, and zero.
	Spawned, Executed time.Time
	// Stop is when its end began: the tool ended, or the kill ladder's cause came
	// (the deadline itself, say). Kill is the kill of its group, which clears up
	// behind a call that has ended by itself, too. Empty: none of its processes
	// was left, or those that were had been given up.
	Stop, Kill, Empty, Done time.Time
}

// Phase is a part of a call's time.
type Phase struct {
	Name string
	// Of is the phase that this one is a part of; empty for those that follow one
	// another.
	Of       string
	From, To time.Time
}

// Names of phases that a call has by itself. The last, finish, is for reading what is
// left and making the result. Parts of the start are birth (group, pipes, launcher),
// sandbox (namespaces, mounts, filter) and handshake (the tool's program, until it
// answers).
const (
	PhaseQueue = "queue" // waiting for a slot
	PhaseStart = "start" // until the tool runs
	PhaseRun   = "run"   // the tool's own work
	PhaseKill  = "kill"  // until no process is left: the ladder, or what is cleared up behind a call
)

// Phases are those that the call has had, in order, each part behind its whole.
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

// first is the first of two moments that has come.
func first(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}
