package spec

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/cgroup"
)

// Keep keeps a tool's process for later calls of the same request (the same
// binary, argument vector, environment, limits and policy). It is for trusted
// tools only: later calls find what earlier ones left in memory and workspace.
// Limits hold for all its calls together. A call that must be killed ends the
// process, and with it the other calls in flight, with StatusCollateral.
type Keep struct {
	// Idle is how long the process waits for another call; zero is
	// DefaultKeepIdle.
	Idle time.Duration `json:"idleNs,omitempty"`
	// MaxCalls is the number of calls after which the process ends; zero means no limit.
	MaxCalls int `json:"maxCalls,omitempty"`
	// Once ends the process after one call, which gets it fresh. If a Describe of the
	// same request has started an Adapter's process, that process waits for the call,
	// so that the adapter's program starts only once; not if the request has a Lock.
	Once bool `json:"once,omitempty"`
	// Shared lets the call run at the same time as other shared calls of the process.
	// Other calls use the process alone, one after another. What the process writes to
	// stdout and stderr goes to every call in flight.
	Shared bool `json:"shared,omitempty"`
	// Asked makes a Describe ask the kept process, if there is one, in line with its
	// calls. A Describe without an answer then does not end other calls.
	Asked bool `json:"-"`
	// Notices, if not nil, is called with the notifications of an adapter's server in
	// the process, also between calls, and once with an empty method and nil params
	// when the process has ended. It must be quick and safe for concurrent use. The
	// first call's Notices is used. share is the key of the only share that the
	// process serves, or empty if it serves all.
	Notices func(share, method string, params json.RawMessage) `json:"-"`
}

// DefaultKeepIdle is how long a kept process waits for another call.
const DefaultKeepIdle = 5 * time.Minute

// Lock keeps calls that use the same files from running at once, including those
// of other hosts. It is a flock(2) on a file, released when its holder ends.
type Lock struct {
	// File is created if missing, and not removed. The call must not have access to it.
	// Empty means no lock.
	File string
	// Shared takes a shared lock instead of an exclusive one.
	Shared bool
}

// Share identifies whom a call is for. Shares get slots in turn, however many calls of one
// share wait. Shares with slots leave free slots for others: one for each share that has none
// and called in the last 10 s, at most a quarter of all slots, and two beside another share's
// only call in its first 500 ms, at most half of all slots.
type Share struct {
	// Key is the same for all calls of a share; the empty key is a share like any other.
	Key string
	// Running and Waiting bound how many of its calls run and wait at once; 0 means
	// unlimited.
	Running, Waiting int
	// MemoryBytes and CPUPercent bound the processes of all its calls together, by a
	// cgroup; 0 means unlimited. Without cgroups such calls are refused.
	MemoryBytes, CPUPercent int64
	// Apart keeps kept processes (see Keep) for this share alone, as MemoryBytes and
	// CPUPercent do: its calls find nothing that another share's calls left in a process,
	// do not wait for them, and do not end with them.
	Apart bool
}

// Group returns the limits of all processes of its calls together.
func (s Share) Group() cgroup.Share {
	return cgroup.Share{Name: s.Key, Limits: cgroup.Limits{MemoryBytes: s.MemoryBytes, CPUPercent: s.CPUPercent}}
}

// Process returns the key of the only share that a kept process may serve, or "" if it
// may serve several.
func (s Share) Process() string {
	if s.Apart || s.Bounded() {
		return s.Key
	}
	return ""
}

// Bounded reports whether MemoryBytes or CPUPercent is set.
func (s Share) Bounded() bool { return s.MemoryBytes != 0 || s.CPUPercent != 0 }

// Pool bounds how many calls of a kind run at once, in addition to the supervisor's
// Admission, so that untrusted or heavy calls leave slots for others.
type Pool struct {
	// Name is the same for calls that share the slots.
	Name string
	// Running is the number of slots; 0 means unlimited.
	Running int
}
