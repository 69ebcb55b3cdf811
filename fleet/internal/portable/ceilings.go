package portable

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/docker/go-units"

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

// Check says which ceiling a request is over. The network's is the supervisor's, which looks
// at the paths once more when it has opened them, and the timeout's is checked when the asks
// for it are resolved.
func (c Ceilings) Check(r supervisor.Request) error {
	if err := c.checkLimits(r.Limits); err != nil {
		return err
	}
	if err := c.checkPaths(r.Sandbox.Write, true); err != nil {
		return err
	}
	return c.checkPaths(r.Sandbox.Read, false)
}

// checkPaths refuses a path that is not there in the words for one that is not allowed:
// nobody learns which other files the machine has.
func (c Ceilings) checkPaths(paths []string, write bool) error {
	for _, path := range paths {
		if leads, err := filepath.EvalSymlinks(filepath.Clean(path)); err != nil || !filepath.IsAbs(path) || !c.lets(leads, write) {
			return refuseFile(path, write)
		}
	}
	return nil
}

func refuseFile(path string, write bool) error {
	word := "read"
	if write {
		word = "write"
	}
	return fmt.Errorf("the worker lets calls %[2]s none of %[1]s: its owner may allow that with --%[2]s", path, word)
}

// Supervisor is the ceiling of a worker's supervisor.
func (c Ceilings) Supervisor(worker string) supervisor.Ceiling {
	n := c.Network
	if n.Network == "" && len(n.Grants) == 0 {
		n.Network = sandbox.NetworkNone
	}
	n.Source = "--network of worker " + worker
	n.Files = func(path string, write bool) error {
		if !c.lets(path, write) {
			return refuseFile(path, write)
		}
		return nil
	}
	return n
}

// Shows says whether calls may be granted a path, also one that is still to be made.
func (c Ceilings) Shows(path string) bool {
	path, err := filepath.Abs(path)
	return err == nil && c.lets(sandbox.Real(path), false)
}

// lets says whether calls may be granted what is at a real path.
func (c Ceilings) lets(path string, write bool) bool {
	allowed := c.Write
	if !write {
		allowed = slices.Concat(c.Read, c.Write)
	}
	return slices.ContainsFunc(allowed, func(one string) bool { return sandbox.Within(path, sandbox.Real(one)) })
}

func (c Ceilings) checkLimits(l supervisor.Limits) error {
	for _, v := range []struct {
		name        string
		text        func(int64) string
		asked, most int64
	}{{"memory", size, l.MemoryBytes, c.MemoryBytes}, {"pids", number, l.Pids, c.Pids}, {"cpu", percent, l.CPUPercent, c.CPUPercent}} {
		if v.most > 0 && (v.asked == 0 || v.asked > v.most) {
			return fmt.Errorf("the limit %s of %s is over the worker's ceiling of %s: ask for less, or have its owner raise --max-%s", v.name, asked(v.asked, v.text), v.text(v.most), v.name)
		}
	}
	return nil
}

func asked(n int64, text func(int64) string) string {
	if n == 0 || n == supervisor.Unlimited {
		return infinity
	}
	return text(n)
}

// size is in bytes where it is not a round one, so that a size that is over another never
// looks like that.
func size(bytes int64) string {
	short := units.BytesSize(float64(bytes))
	if exact, err := units.RAMInBytes(short); err != nil || exact != bytes {
		return number(bytes) + " bytes"
	}
	return short
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func percent(n int64) string { return number(n) + "%" }

// CheckTimeout says whether a timeout in force is over the ceiling.
func (c Ceilings) CheckTimeout(timeout time.Duration) error {
	if c.Timeout > 0 && timeout > c.Timeout {
		return fmt.Errorf("the timeout of %s is over the worker's ceiling of %s: ask for less, or have its owner raise --max-timeout", timeoutText(timeout), c.Timeout)
	}
	return nil
}

const infinity = "infinity"

func timeoutText(d time.Duration) string {
	if d == budget.Infinite {
		return infinity
	}
	return d.String()
}
