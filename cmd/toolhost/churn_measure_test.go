package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// footing is what a host and its zygote stand on while they do nothing.
type footing struct {
	goroutines   int
	heap         int64
	host, zygote standing
}

// standing is one process.
type standing struct {
	pid, files, threads int
	rss, pss            int64
}

// What may come on top of the first measure: threads stay for good in Go, and
// are as many as once were blocked at the same time; the zygote's memory cannot
// be collected from outside.
const (
	moreFiles, moreThreads = 4, 24
	moreHeap               = 8 << 20
	moreHost, moreZygote   = 48 << 20, 16 << 20
)

func (f footing) String() string {
	return fmt.Sprintf("%d goroutines, heap %d KiB; host %s; zygote %d %s", f.goroutines, f.heap>>10, f.host, f.zygote.pid, f.zygote)
}

func (s standing) String() string {
	return fmt.Sprintf("%d files, %d threads, RSS %d KiB, PSS %d KiB", s.files, s.threads, s.rss>>10, s.pss>>10)
}

// compare wants everything to be as it was at first.
func (f footing) compare(t *testing.T, first footing) {
	t.Helper()
	for _, one := range f.beside(first) {
		if one.now > one.first+one.more {
			t.Errorf("%d %s, after the first round it was %d", one.now, one.what, one.first)
		}
	}
}

type grown struct {
	what             string
	now, first, more int64
}

func (f footing) beside(first footing) []grown {
	return []grown{
		{"goroutines", int64(f.goroutines), int64(first.goroutines), moreFiles},
		{"bytes of heap", f.heap, first.heap, moreHeap},
		{"files of the host", int64(f.host.files), int64(first.host.files), moreFiles},
		{"threads of the host", int64(f.host.threads), int64(first.host.threads), moreThreads},
		{"bytes of PSS of the host", f.host.pss, first.host.pss, moreHost},
		{"files of the zygote", int64(f.zygote.files), int64(first.zygote.files), moreFiles},
		{"threads of the zygote", int64(f.zygote.threads), int64(first.zygote.threads), moreThreads},
		{"bytes of PSS of the zygote", f.zygote.pss, first.zygote.pss, moreZygote},
		{"is the pid of another zygote", int64(f.zygote.pid), int64(first.zygote.pid), 0},
	}
}

// settling bounds the wait for what ends behind the calls' results.
const settling = 10 * time.Second

// measure waits until nothing runs any more, and for what is freed behind that. Of sandboxes
// that wait there may be more or fewer: none are left.
func (c *churn) measure(first footing) (f footing) {
	c.Helper()
	wait.Until(c, "no call runs, and no kept process", func() bool { h := c.host.Host(); return h.Running+h.Kept == 0 })
	c.host.EndIdle()
	over := time.Now().Add(settling)
	wait.Until(c, "all is freed", func() bool {
		last := f
		f = c.look()
		if first.goroutines == 0 {
			return f.host.files == last.host.files && f.goroutines == last.goroutines
		}
		more := slices.ContainsFunc(f.beside(first), func(g grown) bool { return g.now > g.first+g.more })
		return !more || time.Now().After(over)
	})
	return f
}

func (c *churn) look() footing {
	c.Helper()
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return footing{goroutines: runtime.NumGoroutine(), heap: int64(memory.HeapAlloc), host: c.standing(os.Getpid()), zygote: c.standing(processes.Zygote())}
}

func (c *churn) standing(pid int) standing {
	c.Helper()
	dir := "/proc/" + strconv.Itoa(pid)
	entries, err := os.ReadDir(dir + "/fd")
	if err != nil {
		c.Fatal(err)
	}
	s := standing{pid: pid}
	for _, entry := range entries { // users for calls are kept: as many as ever ran at once
		if to, _ := os.Readlink(dir + "/fd/" + entry.Name()); !strings.Contains(to, "/users/") {
			s.files++
		}
	}
	threads, _ := os.ReadDir(dir + "/task")
	s.threads = len(threads)
	raw, err := os.ReadFile(dir + "/smaps_rollup")
	if err != nil {
		c.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "Rss:":
			s.rss = kib << 10
		case "Pss:":
			s.pss = kib << 10
		}
	}
	return s
}

func mountsOf(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// nothingLeft looks for what a closed host has left: processes, sockets and
// folders, cgroups in any hierarchy, mounts.
func (c *churn) nothingLeft(dir, place, mounts string) {
	c.Helper()
	if left := processes.WithEnvironment(c.mark); len(left) > 0 {
		c.Errorf("processes left: %d", left)
	}
	for where, is := range map[string]func(fs.DirEntry) bool{
		dir:              func(e fs.DirEntry) bool { return e.Type() == fs.ModeSocket || strings.Contains(e.Name(), "plugin-dir") },
		"/sys/fs/cgroup": func(e fs.DirEntry) bool { return e.Name() == filepath.Base(place) },
	} {
		err := filepath.WalkDir(where, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && is(entry) {
				c.Errorf("left: %s", path)
			}
			if errors.Is(err, fs.ErrNotExist) { // another test's
				return nil
			}
			return err
		})
		if err != nil {
			c.Error(err)
		}
	}
	if now := mountsOf(c.T); now != mounts {
		c.Errorf("mounts have changed from\n%s\nto\n%s", mounts, now)
	}
}
