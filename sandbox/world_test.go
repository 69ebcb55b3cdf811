package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// world is a host and what it was found to have.
type world struct {
	*Host
	t testing.TB
	f Features
}

// enter opens and probes a host. Where the test needs a sandbox (as it does
// unless it names TierNone) and there is none, it is skipped by the name of
// what is missing, but root must have all.
func enter(t testing.TB) *world {
	t.Helper()
	w := enterAny(t)
	for _, found := range w.f.Findings() {
		if found.State == Yes || found.Optional() || found.Feature == FeatureOwnUID && os.Geteuid() != 0 {
			continue
		}
		if os.Geteuid() == 0 {
			t.Fatalf("missing, though it must exist here: %s: %s", found.Feature, found.Reason)
		}
		t.Skipf("missing: %s: %s", found.Feature, found.Reason)
	}
	return w
}

func enterAny(t testing.TB) *world {
	t.Helper()
	h, err := Open(filepath.Join(t.TempDir(), "users"))
	must(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := h.Probe(wait.Context(t), nil)
	must(t, err)
	return &world{h, t, f}
}

// plan makes one for the test binary as the tool, at /tool. An unprivileged
// caller shares its user where it must.
func (w *world) plan(p Policy, task Task) *Plan {
	w.t.Helper()
	if os.Geteuid() != 0 && (len(p.Read)+len(p.Write)+len(p.Workspace) > 0 || w.f.find(FeatureOwnUID).State != Yes) {
		p.Allow = append(p.Allow, SharedUID)
	}
	self, err := os.Executable()
	must(w.t, err)
	task.Programs = append(task.Programs, Program{Source: self, Target: "/tool"})
	return plan(w.t, p, w.f, task)
}

// call is one started tool with both ends of its pipes.
type call struct {
	*Process
	t      testing.TB
	stdin  *os.File
	stdout *os.File
	err    error // of Start
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// spec is a role's start; stdin is what the tool reads, out what it writes.
func (w *world) spec(p *Plan, role string, args []string, stdin, out *os.File) Spec {
	s := Spec{
		Plan: p, Path: "/tool", Args: append([]string{"tool"}, args...), Env: []string{roleVar + "=" + role}, Dir: "/",
		Stdio: [3]*os.File{stdin, out, out}, Timer: wait.Bound,
	}
	if !p.Confined() {
		s.Path, _ = os.Executable()
		s.SocketDir = w.t.TempDir()
	}
	return s
}

// start starts a role; change may alter its start.
func (w *world) start(p *Plan, role string, args []string, change func(*Spec)) *call {
	w.t.Helper()
	stdin, toTool := pipe(w.t)
	stdout, fromTool := pipe(w.t)
	spec := w.spec(p, role, args, stdin, fromTool)
	if change != nil {
		change(&spec)
	}
	process, err := w.Start(wait.Context(w.t), spec)
	_, _ = stdin.Close(), fromTool.Close()
	if err == nil {
		w.t.Cleanup(func() { process.Kill(); process.Release() })
	}
	return &call{process, w.t, toTool, stdout, err}
}

// run starts a role of which the start must succeed.
func (w *world) run(p *Plan, role string, args ...string) *call {
	w.t.Helper()
	c := w.start(p, role, args, nil)
	must(w.t, c.err)
	must(w.t, c.Started(wait.Context(w.t)))
	return c
}

// do runs deeds in one call and returns their answers. None is left of it.
func (w *world) do(p *Plan, deeds ...string) []string {
	w.t.Helper()
	c := w.run(p, "do", deeds...)
	answers := strings.Split(strings.TrimSuffix(c.output(), "\n"), "\n")
	if status := c.status(); status != 0 || len(answers) != len(deeds) {
		w.t.Fatalf("status %#x, answers %q to %q", status, answers, deeds)
	}
	c.Kill()
	c.waitGone()
	return answers
}

// wantDo compares the answers of deeds, given as deed and answer in turn.
func (w *world) wantDo(p *Plan, pairs ...string) {
	w.t.Helper()
	var deeds []string
	for i := 0; i < len(pairs); i += 2 {
		deeds = append(deeds, pairs[i])
	}
	for i, got := range w.do(p, deeds...) {
		if got != pairs[2*i+1] {
			w.t.Errorf("%s: %q, want %q", deeds[i], got, pairs[2*i+1])
		}
	}
}

// output reads until nobody holds the tool's stdout any more.
func (c *call) output() string {
	c.t.Helper()
	must(c.t, c.stdout.SetReadDeadline(time.Now().Add(wait.Bound)))
	text, err := io.ReadAll(c.stdout)
	must(c.t, err)
	return string(text)
}

func (c *call) line() string {
	c.t.Helper()
	must(c.t, c.stdout.SetReadDeadline(time.Now().Add(wait.Bound)))
	buf := make([]byte, 256)
	n, err := c.stdout.Read(buf)
	must(c.t, err)
	return string(buf[:n])
}

func (c *call) status() syscall.WaitStatus {
	c.t.Helper()
	select {
	case status, ok := <-c.Exited():
		if !ok {
			c.t.Fatal("the launcher ended without reporting an exit")
		}
		return status
	case <-wait.Context(c.t).Done():
		c.t.Fatal("no exit reported")
	}
	return 0
}

func (c *call) waitGone() {
	c.t.Helper()
	select {
	case <-c.Gone():
	case <-wait.Context(c.t).Done():
		c.t.Fatal("the launcher is still there")
	}
}

// children are the processes of a parent whose command line begins so.
func children(t testing.TB, parent int, name string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) && bytes.HasPrefix(line, []byte(name)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descriptors counts a process's open files, but for networks: a zygote has made some
// for calls to come, and makes others meanwhile.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	names := openNames(t, pid)
	return len(names) - networksOf(names)
}

func networks(t testing.TB, pid int) int {
	t.Helper()
	return networksOf(openNames(t, pid))
}

func networksOf(names []string) (n int) {
	for _, name := range names {
		if strings.HasPrefix(name, "net:[") {
			n++
		}
	}
	return n
}

// openNames are what a process has open; empty is what it has closed meanwhile.
func openNames(t testing.TB, pid int) (names []string) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		name, _ := os.Readlink(filepath.Join(dir, entry.Name()))
		names = append(names, name)
	}
	return names
}
