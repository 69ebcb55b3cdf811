package portable

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Ceilings are what a worker's owner lets calls have.
type Ceilings struct {
	// Of these zero bounds nothing.
	MemoryBytes, Pids, CPUPercent int64
	Timeout                       time.Duration
	// Network is what calls may reach; its zero value is nothing.
	Network supervisor.Ceiling
	// Read and Write are the paths at and below which calls may be granted some; without
	// them calls see no files of the worker's machine.
	Read, Write []string
}

// Check says which ceiling a request is over. The network's is the supervisor's, and the
// timeout's is checked when the asks for it are resolved.
func (c Ceilings) Check(r supervisor.Request) error {
	if err := c.checkLimits(r.Limits); err != nil {
		return err
	}
	for _, path := range r.Sandbox.Write {
		if !below(path, c.Write) {
			return fmt.Errorf("the worker lets calls write none of %s: its owner may allow that with --write", path)
		}
	}
	for _, path := range r.Sandbox.Read {
		if !below(path, slices.Concat(c.Read, c.Write)) {
			return fmt.Errorf("the worker lets calls read none of %s: its owner may allow that with --read", path)
		}
	}
	return nil
}

// Networks is the ceiling of a worker's supervisor.
func (c Ceilings) Networks(worker string) supervisor.Ceiling {
	n := c.Network
	if n.Network == "" && len(n.Grants) == 0 {
		n.Network = sandbox.NetworkNone
	}
	n.Source = "--network of worker " + worker
	return n
}

// Shows says whether calls may be granted a path.
func (c Ceilings) Shows(path string) bool {
	path, err := filepath.Abs(path)
	return err == nil && below(path, slices.Concat(c.Read, c.Write))
}

// below says whether a path, wherever its links lead, is one of these or in one.
func below(path string, allowed []string) bool {
	leads, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return false
	}
	return slices.ContainsFunc(allowed, func(one string) bool {
		one, err := filepath.EvalSymlinks(one)
		return err == nil && (leads == one || strings.HasPrefix(leads, strings.TrimSuffix(one, "/")+"/"))
	})
}

func (c Ceilings) checkLimits(l supervisor.Limits) error {
	for _, v := range []struct {
		name, unit  string
		asked, most int64
	}{{"memory", " bytes", l.MemoryBytes, c.MemoryBytes}, {"pids", "", l.Pids, c.Pids}, {"cpu", "%", l.CPUPercent, c.CPUPercent}} {
		if v.most > 0 && (v.asked == 0 || v.asked > v.most) {
			return fmt.Errorf("the limit %s of %d%s is over the worker's ceiling of %d%s: ask for less, or have its owner raise --max-%s", v.name, v.asked, v.unit, v.most, v.unit, v.name)
		}
	}
	return nil
}

// CheckTimeout says whether a timeout in force is over the ceiling.
func (c Ceilings) CheckTimeout(timeout time.Duration) error {
	if c.Timeout > 0 && timeout > c.Timeout {
		return fmt.Errorf("the timeout of %s is over the worker's ceiling of %s: ask for less, or have its owner raise --max-timeout", timeoutText(timeout), c.Timeout)
	}
	return nil
}

func timeoutText(d time.Duration) string {
	if d == budget.Infinite {
		return "infinity"
	}
	return d.String()
}
