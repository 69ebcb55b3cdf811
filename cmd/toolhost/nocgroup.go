package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/cgroup"
)

const (
	noCgroupFlag    = "unsafe-no-cgroup"
	noCgroupUsage   = "run without a cgroup: memory is limited for each process instead of the call, CPU and IO are not limited, and usage is not known; the namespace's kill, the timer and rlimits still hold"
	noCgroupWarning = "no cgroup: memory is limited for each process, not for all of a call, CPU and IO are not limited, and what was used is not known"
)

// orWithout names the way out for a user who cannot have cgroups.
func orWithout(err error) error {
	if _, ok := errors.AsType[*cgroup.UnavailableError](err); ok {
		return fmt.Errorf("%w; or run without limits of CPU and IO: --%s", err, noCgroupFlag)
	}
	return err
}

// warnUnsafe says on stderr what the flags have taken away.
func (f *callFlags) warnUnsafe() {
	if f.unsafe {
		fmt.Fprintln(os.Stderr, "toolhost: WARNING: no sandbox: calls may read, change and send all that you may")
	}
	if f.noCgroup {
		fmt.Fprintln(os.Stderr, "toolhost: WARNING: "+noCgroupWarning)
	}
}
