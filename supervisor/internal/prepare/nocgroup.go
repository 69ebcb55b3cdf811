package prepare

import (
	"errors"
	"fmt"
	"math"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// errHeldByNothing: neither a cgroup nor a PID namespace would end the call.
var errHeldByNothing = errors.New("without cgroups a call needs the sandbox, whose PID namespace ends it for certain: leave out --unsafe-no-cgroup (NoCgroup), or choose tier native")

// noCgroup is what a receipt says where there are no cgroups.
func noCgroup() api.Degradation {
	return api.Degradation{
		Feature: "cgroup",
		Reason:  "none is in use: memory is limited for each process and not for all of the call, CPU and IO are not, and what the call has used is not known",
		Remedy:  cgroup.PlaceRemedy(),
	}
}

// boundWithoutCgroup drops what nothing can enforce where there are no cgroups. A
// limit of CPU time would end the call, so that it is not dropped in silence.
func (n *preparation) boundWithoutCgroup() error {
	if !n.NoCgroup {
		return nil
	}
	if n.Bounds.CPUTime > 0 {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, errors.New("a limit of CPU time needs a cgroup, and none is in use: leave it out, or --unsafe-no-cgroup (NoCgroup)"))
	}
	if own := n.Request.Share; own.Bounded() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, fmt.Errorf("the quotas of memory and CPU of %q need cgroups, and none are in use: leave them out, or --unsafe-no-cgroup (NoCgroup)", own.Key))
	}
	n.Bounds.CPUPercent, n.Bounds.CPUWeight, n.Bounds.IOWeight, n.Bounds.IOMax = 0, 0, 0, nil
	return nil
}

// rlimits are those that stand in for the limits of a cgroup: bytes of each
// process, and tasks of the call's user.
func (n *preparation) rlimits() (processBytes, tasks int64) {
	if !n.NoCgroup {
		return 0, 0
	}
	l := n.treeLimits()
	if l.MemoryBytes > 0 && l.MemoryBytes < math.MaxInt64-reservedBytes {
		processBytes = l.MemoryBytes + reservedBytes
	}
	return processBytes, l.Pids
}

// reservedBytes are what a process may have on top of its limit: runtimes reserve
// address space that they never use, Go 64 MiB of it.
const reservedBytes = 128 << 20
