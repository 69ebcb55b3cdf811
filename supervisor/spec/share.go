package spec

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/cgroup"
)

// Keep lets a tool's process live on for later calls of the same request (the
// same binary, arguments vector, environment, limits and policy). It is for
// trusted tools only: what one call leaves in the process, its workspace and
// its memory, the next one finds. Limits hold for all its calls together. The
// process ends at the first call that must be killed, and takes the others in
// flight with it: they are StatusCollateral.
type Keep struct {
	// Idle is how long the process waits for another call; zero is
	// DefaultKeepIdle.
	Idle time.Duration `json:"idleNs,omitempty"`
	// MaxCalls ends the process after so many calls; zero means no limit.
	MaxCalls int `json:"maxCalls,omitempty"`
	// Once ends the process after one call, for which it is fresh. The process of an
	// Adapter that a Describe of the same request has asked waits for that call, so
	// that its program is started once; not where the request has a Lock.
	Once bool `json:"once,omitempty"`
	// Shared lets the call run beside other shared ones on the process; the
	// others have it to themselves, in line. What it writes to stdout and stderr
	// is every call's that is in flight.
	Shared bool `json:"shared,omitempty"`
	// Asked has a Describe ask the process that is kept for such calls, in line with
	// them, if there is one; it then ends no other's call where it gets no answer.
	Asked bool `json:"-"`
	// Notices, if not nil, gets what an adapter's server announces in the process, also
	// between calls, and once nil params with an empty method when the process has
	// ended. It must be quick, and may be called from any goroutine. The first
	// call's holds. share is the key of the only one whose calls the process serves,
	// and empty where it serves those of all.
	Notices func(share, method string, params json.RawMessage) `json:"-"`
}

// DefaultKeepIdle is how long a kept process waits for another call.
const DefaultKeepIdle = 5 * time.Minute

// Lock keeps calls that use the same files from running at once, also those of
// other hosts: it is a flock(2) on a file, which ends with its holder.
type Lock struct {
	// File is made if it is missing, and stays. It must be out of the call's reach. Empty
	// means no lock.
	File string
	// Shared lets others run that share it, too.
	Shared bool
}

// Share says who a call is for. Shares get slots in turn, however many calls of one share
// wait. Shares with slots leave one free for each share without any that called in the last
// 10 s, a fourth of all slots at most, and two beside another share's only call in its first
// 500 ms, half of all slots at most.
type Share struct {
	// Key is the same for all calls of a share; the empty key is a share like any other.
	Key string
	// Running and Waiting bound how many of its calls run and wait at once; 0 means
	// unlimited.
	Running, Waiting int
	// MemoryBytes and CPUPercent bound what the processes of its calls have together, by a
	// cgroup of their own; 0 means unlimited. Without cgroups such calls are refused.
	MemoryBytes, CPUPercent int64
	// Apart keeps processes (Keep) for calls of this share alone, as is so where they are
	// bounded together: its calls then find nothing that another share's have left in a
	// process, wait for none of these, and do not end with them.
	Apart bool
}

// Group returns the limits of all processes of its calls together.
func (s Share) Group() cgroup.Share {
	return cgroup.Share{Name: s.Key, Limits: cgroup.Limits{MemoryBytes: s.MemoryBytes, CPUPercent: s.CPUPercent}}
}

// Process returns the key of the share alone whose calls a kept process serves; empty
// where it may serve those of several.
func (s Share) Process() string {
	if s.Apart || s.Bounded() {
		return s.Key
	}
	return ""
}

// Bounded reports whether there are such limits.
func (s Share) Bounded() bool { return s.MemoryBytes != 0 || s.CPUPercent != 0 }

// Pool bounds how many calls of a kind run at once, beside the supervisor's own
// Admission: what is not trusted, or heavy, leaves slots to the others.
type Pool struct {
	// Name is the same for calls that share the slots.
	Name string
	// Running is the number of slots; 0 means unlimited.
	Running int
}
