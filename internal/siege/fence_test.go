package siege

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// fence is a cgroup of one name in each hierarchy, as a service has it: the
// daemon's calls go below it, the daemon itself into a child, whose memory is
// bounded.
type fence struct {
	path   string // in every hierarchy
	dirs   []string
	memory string // the daemon's folder
	v2     bool
}

// newFence makes one that is gone with the test.
func newFence(t *testing.T, name string, memoryBytes int64) *fence {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("bounds the daemon's memory: needs root")
	}
	f := &fence{path: "/" + name}
	t.Cleanup(func() { f.remove(t) })
	for _, mount := range hierarchies(t) {
		dir := filepath.Join(mount, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		f.dirs = append(f.dirs, dir)
	}
	f.bound(t, memoryBytes)
	return f
}

// hierarchies are where the controllers that calls need are mounted, cgroup2
// among them.
func hierarchies(t *testing.T) (mounts []string) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		needed := func(option string) bool {
			return slices.Contains([]string{"memory", "cpu", "cpuacct", "pids", "blkio"}, option)
		}
		if fields[2] == "cgroup2" || fields[2] == "cgroup" && slices.ContainsFunc(strings.Split(fields[3], ","), needed) {
			mounts = append(mounts, fields[1])
		}
	}
	return mounts
}

// bound makes the daemon's children, and bounds the one where memory is.
func (f *fence) bound(t *testing.T, bytes int64) {
	t.Helper()
	for _, dir := range f.dirs {
		file := "memory.limit_in_bytes"
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "cgroup.controllers")); err == nil {
			// In hybrid layouts memory is elsewhere, and this fails.
			_ = os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"), []byte("+memory +cpu"), 0)
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +cpu"), 0)
			file = "memory.max"
		}
		child := filepath.Join(dir, "daemon")
		if err := os.Mkdir(child, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(child, file), []byte(strconv.FormatInt(bytes, 10)), 0); err == nil {
			f.memory, f.v2 = child, file == "memory.max"
		}
	}
	if f.memory == "" {
		t.Skip("no cgroup bounds memory here")
	}
}

// banish moves a process to a group beside the fence, which has the CPUs only where
// nothing else wants them (cpu.idle): nice values count within a session only where
// sessions are scheduled as groups (sched(7), "The autogroup feature").
func (f *fence) banish(t *testing.T, pid int) {
	t.Helper()
	for _, dir := range f.dirs {
		child := dir + "-mob"
		if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		_ = os.WriteFile(filepath.Join(child, "cpu.shares"), []byte("2"), 0)
		_ = os.WriteFile(filepath.Join(child, "cpu.weight"), []byte("1"), 0)
		_ = os.WriteFile(filepath.Join(child, "cpu.idle"), []byte("1"), 0)
		if err := os.WriteFile(filepath.Join(child, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// doors are the files by which a process gets in.
func (f *fence) doors() string {
	var files []string
	for _, dir := range f.dirs {
		files = append(files, filepath.Join(dir, "daemon", "cgroup.procs"))
	}
	return strings.Join(files, " ")
}

// used is what the kernel counts for the daemon, and how often it had to kill.
func (f *fence) used() (bytes, kills int64) {
	names := []string{"memory.usage_in_bytes", "memory.oom_control"}
	if f.v2 {
		names = []string{"memory.current", "memory.events"}
	}
	raw, _ := os.ReadFile(filepath.Join(f.memory, names[0]))
	bytes, _ = strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	events, _ := os.ReadFile(filepath.Join(f.memory, names[1]))
	for line := range strings.Lines(string(events)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, _ = strconv.ParseInt(strings.TrimSpace(count), 10, 64)
		}
	}
	return bytes, kills
}

// left are folders of calls, and processes of the daemon's.
func (f *fence) left() (found []string) {
	for _, dir := range f.dirs {
		folders, _ := filepath.Glob(dir + "/toolhost-*")
		found = append(found, folders...)
	}
	if raw, _ := os.ReadFile(filepath.Join(f.memory, "cgroup.procs")); len(raw) > 0 {
		found = append(found, "processes "+strings.Join(strings.Fields(string(raw)), " "))
	}
	return found
}

// remove waits for what still dies there, and leaves nothing.
func (f *fence) remove(t *testing.T) {
	wait.Until(t, "the daemon's cgroups are gone", func() bool {
		for _, dir := range f.dirs {
			folders, _ := filepath.Glob(dir + "/*/c-*")
			parents, _ := filepath.Glob(dir + "/*-*")
			parents = append(parents, filepath.Join(dir, "daemon"), dir+"-mob")
			for _, path := range slices.Concat(folders, parents, []string{dir}) {
				_ = os.Remove(path)
			}
		}
		return !slices.ContainsFunc(f.dirs, func(dir string) bool { _, err := os.Stat(dir); return err == nil })
	})
}
