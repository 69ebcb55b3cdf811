package portable

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// Ceilings are what a worker's owner lets calls have; zero fields bound nothing.
type Ceilings struct {
	MemoryBytes, Pids, CPUPercent int64
	// Timeout is checked once the call's asks are resolved.
	Timeout time.Duration
}

// Check says which ceiling a call's limits are over.
func (c Ceilings) Check(l supervisor.Limits) error {
	for _, v := range []struct {
		name        string
		asked, most int64
	}{{"memory", l.MemoryBytes, c.MemoryBytes}, {"pids", l.Pids, c.Pids}, {"cpu", l.CPUPercent, c.CPUPercent}} {
		if v.most > 0 && (v.asked == 0 || v.asked > v.most) {
			return fmt.Errorf("the limit %s of %d is over the worker's ceiling of %d", v.name, v.asked, v.most)
		}
	}
	return nil
}

// CheckTimeout says whether a timeout in force is over the ceiling.
func (c Ceilings) CheckTimeout(timeout time.Duration) error {
	if c.Timeout > 0 && timeout > c.Timeout {
		return fmt.Errorf("the timeout of %s is over the worker's ceiling of %s", timeoutText(timeout), c.Timeout)
	}
	return nil
}

func timeoutText(d time.Duration) string {
	if d == budget.Infinite {
		return "infinity"
	}
	return d.String()
}
