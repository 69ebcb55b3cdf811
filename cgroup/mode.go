package cgroup

// Mode says which cgroup layout is in use.
type Mode int

const (
	ModeV2     Mode = iota + 1 // all controllers in cgroup2
	ModeHybrid                 // v1 controllers beside a cgroup2 mount of the host
	ModeV1                     // v1 controllers, cgroup2 through a detached mount of our own
	ModeNone                   // no cgroups: see None
)

// String returns "v2", "hybrid", "v1" or "none".
func (m Mode) String() string {
	switch m {
	case ModeV2:
		return "v2"
	case ModeHybrid:
		return "hybrid"
	case ModeV1:
		return "v1"
	case ModeNone:
		return "none"
	}
	return "unknown"
}

// The controllers that limits need, by their v2 names.
const (
	ctrlCPU    = "cpu"
	ctrlIO     = "io"
	ctrlMemory = "memory"
	ctrlPids   = "pids"
)

var allControllers = []string{ctrlCPU, ctrlIO, ctrlMemory, ctrlPids}

// v1Name is the controller's name in /proc/self/cgroup and v1 mount options.
func v1Name(controller string) string {
	if controller == ctrlIO {
		return "blkio"
	}
	return controller
}
