package supervisor

import "github.com/toolhost/toolhost/cgroup"

// Current says what the call's processes use at this moment: CPU time since the
// call began, memory and processes now, where there are controllers for them.
// ok is false if there are none yet, or no longer.
func (c *Call) Current() (now cgroup.Current, ok bool) {
	live := c.live.Load()
	if live == nil || closed(c.done) {
		return cgroup.Current{}, false
	}
	now, err := (*live).Current()
	return now, err == nil
}
