package sandbox

import (
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// hardLimits are those of this process, by resource. No call can have more.
type hardLimits map[int]uint64

func findHardLimits() hardLimits {
	found := hardLimits{}
	for _, resource := range []int{unix.RLIMIT_SIGPENDING, unix.RLIMIT_MEMLOCK, unix.RLIMIT_MSGQUEUE, unix.RLIMIT_DATA, unix.RLIMIT_NPROC} {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) == nil {
			found[resource] = limit.Max
		}
	}
	return found
}

// atMost is a limit that may be lower: nothing is lost where the host's own is.
func (h hardLimits) atMost(resource int, value int64) wire.Rlimit {
	if limit, known := h[resource]; known {
		value = int64(min(uint64(value), limit))
	}
	return wire.Rlimit{Resource: int64(resource), Value: value}
}

func (f Features) rlimits(t Task) []wire.Rlimit {
	openFiles := t.OpenFiles
	if openFiles <= 0 {
		openFiles = DefaultOpenFiles
	}
	limits := []wire.Rlimit{
		{Resource: unix.RLIMIT_NOFILE, Value: openFiles},
		{Resource: unix.RLIMIT_CORE},
		// Timers and queued signals count for the caller's user too.
		f.hard.atMost(unix.RLIMIT_SIGPENDING, 1024),
		f.hard.atMost(unix.RLIMIT_MEMLOCK, 8<<20),
		f.hard.atMost(unix.RLIMIT_MSGQUEUE, 800<<10),
		{Resource: unix.RLIMIT_NICE},
		{Resource: unix.RLIMIT_RTPRIO},
	}
	if t.ProcessBytes > 0 {
		limits = append(limits, f.hard.atMost(unix.RLIMIT_DATA, t.ProcessBytes))
	}
	if t.Tasks > 0 {
		limits = append(limits, f.hard.atMost(unix.RLIMIT_NPROC, t.Tasks))
	}
	return limits
}
