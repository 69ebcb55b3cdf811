package supervisor

import (
	"github.com/toolhost/toolhost/cgroup"
)

// liveGroup is where a call's processes are, for readers outside of the loop.
type liveGroup struct {
	group *cgroup.Group
	// before is what a kept instance had used when this call came.
	before cgroup.Usage
}

// Current says what the call's processes use at this moment: CPU time since the
// call began, memory and processes now, where there are controllers for them.
// ok is false if there are none yet, or no longer.
func (c *Call) Current() (now cgroup.Current, ok bool) {
	live := c.live.Load()
	if live == nil || closed(c.done) {
		return cgroup.Current{}, false
	}
	now, err := live.group.Current()
	if err != nil {
		return cgroup.Current{}, false
	}
	now.CPU = max(now.CPU-live.before.CPUUser-live.before.CPUSystem, 0)
	return now, true
}
