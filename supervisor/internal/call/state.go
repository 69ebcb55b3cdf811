package call

// state is where a call stands in its life.
type state int

const (
	stateQueued   state = iota // waits for a slot
	stateStarting              // launcher, tool, handshake
	stateRunning               // the tool works
	stateStopping              // asked to end; the grace period runs
	stateKilling               // SIGKILL sent; waits for the group to be empty
	stateDraining              // nothing lives; takes what is still in the pipes
	stateDone                  // the result is made
)

var stateNames = [...]string{"queued", "starting", "running", "stopping", "killing", "draining", "done"}

func (s state) String() string { return stateNames[s] }

// trigger is something that has happened to a call.
type trigger int

const (
	admitted      trigger = iota // got a slot
	refused                      // got none: overloaded, or aborted before
	connected                    // the tool answers
	startFailed                  // it never will
	ended                        // its result is complete, or it died
	released                     // its result is complete, and its process is kept
	stopRequested                // deadline, abort or limit
	killRequested                // the same without grace, or a second abort
	graceElapsed                 // SIGTERM was not enough
	emptied                      // no process is left
	survived                     // SIGKILL was not enough either
	drained                      // pipes and stream are at their end, or time is up
	triggerCount                 // how many there are
)

var triggerNames = [...]string{
	"admitted", "refused", "connected", "startFailed", "ended", "released", "stopRequested",
	"killRequested", "graceElapsed", "emptied", "survived", "drained",
}

func (t trigger) String() string { return triggerNames[t] }

// transitions is the whole of a call's life. What is not in it changes nothing.
var transitions = map[state]map[trigger]state{
	stateQueued: {
		admitted: stateStarting,
		refused:  stateDone,
	},
	stateStarting: {
		connected:     stateRunning,
		startFailed:   stateKilling,
		stopRequested: stateStopping,
		killRequested: stateKilling,
	},
	stateRunning: {
		ended:         stateKilling,
		released:      stateDraining,
		stopRequested: stateStopping,
		killRequested: stateKilling,
	},
	stateStopping: {
		ended:         stateKilling,
		startFailed:   stateKilling,
		killRequested: stateKilling,
		graceElapsed:  stateKilling,
	},
	stateKilling: {
		emptied:  stateDraining,
		survived: stateDraining,
	},
	stateDraining: {
		drained:       stateDone,
		killRequested: stateDone,
	},
}

// next is the state that t leads to from s; ok is false if t changes nothing.
func next(s state, t trigger) (to state, ok bool) {
	to, ok = transitions[s][t]
	return to, ok
}
