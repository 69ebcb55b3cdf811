package supervisor_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// runHost is a host that makes n deaf calls and waits to be killed. It runs in
// a process of its own.
func runHost(dir string, n int, timeout time.Duration) {
	host, err := supervisor.New(context.Background(), supervisor.Config{
		RuntimeDir: dir, Admission: supervisor.Admission{Running: n, Queue: n, Wait: time.Hour}, Profiles: patient(),
	})
	if err != nil {
		fmt.Println("cannot:", err)
		os.Exit(1)
	}
	events := make(chan api.Event, 100*n)
	for range n {
		r := request("children", `{"n":3,"text":"orphan"}`)
		r.Events, r.Timeouts, r.Grace = events, within(timeout), budget.NoGrace
		host.Start(context.Background(), r)
	}
	for ready := 0; ready < n; {
		switch e := <-events; {
		case e.Kind == api.EventFailed:
			fmt.Println("failed:", e.Display)
			os.Exit(1)
		case e.Kind == api.EventProgress && e.Message != "":
			ready++
		}
	}
	for os.Getenv(waitingVar) != "" && host.Prestarted().Processes < 2 {
		waiting := request("count", `{}`)
		waiting.Env, waiting.Prestart = []string{runMark()}, 2
		host.Prestart([]supervisor.Request{waiting})
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("ready", host.Host().Place)
	select {}
}

// startHost starts such a host, with more in its environment, and returns it with its cgroup's path.
func startHost(t *testing.T, dir string, n int, timeout time.Duration, more ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), more...), fmt.Sprintf("%s=%s %d %d", hostVar, dir, n, timeout))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	place, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		t.Fatalf("the host says %q, %v", line, err)
	}
	return cmd, place
}

// hostVar makes the test binary such a host, waitingVar one for which processes wait,
// too.
const hostVar, waitingVar = "SUPERVISOR_TEST_HOST", "SUPERVISOR_TEST_WAITING"

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, what, holds)
}

func TestKilledHostLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	calls := 50
	if slow() {
		calls = 10
	}
	mounts := mounted(t)
	cmd, place := startHost(t, dir, calls, time.Hour, waitingVar+"=1")
	if alive() == 0 {
		t.Fatal("no tool is running")
	}
	foreign := foreignGroup(t, filepath.Dir(place))
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "the dead host's tools are gone", func() bool { return alive() == 0 })
	if now := mounted(t); now != mounts {
		t.Errorf("the machine's mounts have changed from\n%s\nto\n%s", mounts, now)
	}
	newHost(t, supervisor.Config{RuntimeDir: dir})
	eventually(t, "the dead host's cgroup is gone", func() bool { // another toolhost of the machine may be about to remove it
		_, err := os.Stat(place)
		return os.IsNotExist(err)
	})
	if left := sockets(t, dir); left != 0 {
		t.Errorf("%d sockets and folders of the dead host are left", left)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign cgroup was touched: %v", err)
	}
}

// mounted lists the machine's mounts.
func mounted(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// foreignGroup makes a cgroup that no supervisor has made and none may touch.
func foreignGroup(t *testing.T, beside string) string {
	t.Helper()
	dir := filepath.Join(beside, fmt.Sprintf("foreign-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	return dir
}

// sockets counts what is left in the runtime folder beside the living host's
// own lock.
func sockets(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d.Type() == fs.ModeSocket || strings.Contains(d.Name(), "plugin-dir") {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A stopped host cannot keep its promise; the launchers do.
func TestStoppedHostTakesItsToolsWithIt(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the launcher's own timer: left out by -short")
	}
	t.Parallel()
	own := rand.Text()          // alive counts the tools of other tests, too
	timeout := 10 * time.Second // which has to cover the start of seven processes, too
	if slow() {
		timeout *= 4
	}
	cmd, _ := startHost(t, t.TempDir(), 1, timeout, runVar+"="+own)
	left := func() int { return len(processes.WithEnvironment(toolVar + "=" + own)) }
	if left() == 0 {
		t.Error("no tool was running")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stopped host's tools are gone", func() bool { return left() == 0 })
}

// open counts what calls must not leave in the host. The users that it has had
// for calls stay its own; there are as many as calls were alive at once.
func open(t *testing.T) (fds, goroutines int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	users := 0
	for _, entry := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.Contains(to, "/users/") {
			users++
		}
	}
	if users > 16 { // those of eight calls at once are kept for others, and those of sandboxes that wait
		t.Errorf("%d users for eight calls at once", users)
	}
	return len(entries) - users, runtime.NumGoroutine()
}

// childProcesses lists this process's, but for the zygote.
func childProcesses() []int {
	return slices.DeleteFunc(processes.Children(os.Getpid()), processes.IsZygote)
}

// allGone ends what waits for calls, and says whether nothing of any call is left.
func allGone(h testHost) bool {
	h.EndIdle()
	groups, err := filepath.Glob(filepath.Join(h.Host().Place, "c-*"))
	return err == nil && len(groups) == 0 && h.Host().Running == 0
}

func TestCallsLeaveNothingInTheHost(t *testing.T) {
	calls := times(30, 60, 300)
	if n := os.Getenv("TOOLHOST_LEAK_CALLS"); n != "" {
		fmt.Sscan(n, &calls)
	}
	dir := t.TempDir()
	host := newHost(t, supervisor.Config{RuntimeDir: dir})
	one := func() { wantStatus(t, call(t, host, request("echo", `{"text":"x"}`)), api.StatusOK) }
	one()
	eventually(t, "the first call is freed", func() bool { return allGone(host) })
	fds, goroutines := open(t)
	before := childProcesses() // a fleet's servers
	for range calls {
		one()
	}
	eventually(t, "no more files and goroutines than before", func() bool {
		gone := allGone(host)
		f, g := open(t)
		return gone && f <= fds && g <= goroutines
	})
	if left := sockets(t, dir); left != 0 {
		t.Errorf("%d sockets left", left)
	}
	left := slices.DeleteFunc(childProcesses(), func(pid int) bool { return slices.Contains(before, pid) })
	if len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
	wait.Until(t, "no cgroup is left", func() bool { return allGone(host) })
}

// What somebody else has done to the launcher is not the tool's doing.
func TestAKilledLauncherIsNoCrashOfTheTool(t *testing.T) {
	host := newHost(t, nothingWaits)
	pid := zygote(t)
	r := request("wait", `{}`)
	events := make(chan api.Event, 100)
	r.Events = events
	running := host.Start(t.Context(), r)
	for e := range events {
		if e.Kind == api.EventStarted {
			break
		}
	}
	var launcher int
	wait.Until(t, "the launcher is the only child of the zygote", func() bool {
		children := processes.Children(pid)
		if len(children) == 1 {
			launcher = children[0]
		}
		return launcher != 0
	})
	if err := syscall.Kill(launcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	result := running.Result()
	wantStatus(t, result, api.StatusCrashed)
	if result.Reason != "launcher" || !strings.Contains(result.Message, "outside of toolhost") || strings.Contains(result.Message, "rashed") || result.Exit.Signal != "" {
		t.Errorf("reason %s, exit %+v, message %q", result.Reason, result.Exit, result.Message)
	}
}
