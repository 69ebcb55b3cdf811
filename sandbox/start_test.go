package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/sandbox"
)

// The test binary plays the tools.
const roleVar = "SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		goleak.VerifyTestMain(m)
	case "exit7":
		os.Exit(7)
	case "killself":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "killinit":
		for sig := syscall.Signal(1); sig < 32; sig++ {
			_ = syscall.Kill(1, sig)
		}
		fmt.Println("still here, pid", os.Getpid())
		os.Exit(0)
	case "sleep":
		fmt.Println("sleeping")
		time.Sleep(time.Hour)
	}
}

func start(t *testing.T, role string, change func(*sandbox.Spec)) (*sandbox.Process, *os.File) {
	t.Helper()
	isolation, err := sandbox.Probe(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{
		Isolation: isolation, Path: self, Args: []string{"tool"}, Env: []string{roleVar + "=" + role}, Dir: "/",
		Stdio: [3]*os.File{null, w, w}, SocketDir: t.TempDir(), Timer: time.Minute,
	}
	if change != nil {
		change(&spec)
	}
	p, err := sandbox.Start(spec, nil)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); p.Release() })
	return p, r
}

func waitStatus(t *testing.T, p *sandbox.Process) syscall.WaitStatus {
	t.Helper()
	select {
	case status := <-p.Exited():
		return status
	case <-time.After(time.Minute):
		t.Fatal("no exit reported within a minute")
		return 0
	}
}

func waitGone(t *testing.T, p *sandbox.Process) {
	t.Helper()
	select {
	case <-p.Gone():
	case <-time.After(time.Minute):
		t.Fatal("launcher still there after a minute")
	}
}

func readLine(t *testing.T, r *os.File) string {
	t.Helper()
	buf := make([]byte, 256)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func TestExitStatusIsTheToolsOwn(t *testing.T) {
	p, _ := start(t, "exit7", nil)
	if err := p.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := waitStatus(t, p); !status.Exited() || status.ExitStatus() != 7 {
		t.Errorf("status = %#x, want exit 7", status)
	}
	p, _ = start(t, "killself", nil)
	if status := waitStatus(t, p); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("status = %#x, want SIGKILL", status)
	}
}

func TestToolCannotSignalItsLauncher(t *testing.T) {
	p, r := start(t, "killinit", nil)
	if got := readLine(t, r); !strings.HasPrefix(got, "still here") {
		t.Errorf("tool says %q", got)
	}
	if status := waitStatus(t, p); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("status = %#x, want exit 0: the launcher's end would have killed it", status)
	}
	select {
	case <-p.Gone():
		t.Error("the launcher did not survive its tool's signals")
	default:
	}
}

func TestKillEndsTheTree(t *testing.T) {
	p, r := start(t, "sleep", nil)
	readLine(t, r)
	p.Kill()
	waitGone(t, p)
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("the tool's pipe is still open after the launcher is gone")
	}
}

func TestTimerEndsTheTreeWithoutTheHost(t *testing.T) {
	p, r := start(t, "sleep", nil)
	readLine(t, r)
	if err := p.SetTimer(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	waitGone(t, p)
	p, _ = start(t, "sleep", func(s *sandbox.Spec) { s.Timer = time.Millisecond })
	waitGone(t, p)
}

func TestSetupErrorIsTyped(t *testing.T) {
	p, _ := start(t, "", func(s *sandbox.Spec) { s.Path = "/nonexistent/tool" })
	err := p.Started(t.Context())
	setup, ok := err.(*sandbox.SetupError)
	if !ok || setup.Step != "execute" || setup.Err != syscall.ENOENT {
		t.Errorf("error = %v, want a SetupError of step execute with ENOENT", err)
	}
}

func TestSocketDirIsHandedOver(t *testing.T) {
	p, _ := start(t, "sleep", nil)
	if err := p.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.SocketDir() == nil {
		t.Fatal("no socket folder was handed over")
	}
	info, err := p.SocketDir().Stat()
	if err != nil || !info.IsDir() {
		t.Errorf("socket folder: %v, %v", info, err)
	}
}

// A pids limit allows for the launcher's tasks, so their number is bounded.
func TestLauncherTasks(t *testing.T) {
	for range 20 {
		p, r := start(t, "sleep", nil)
		readLine(t, r)
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) > sandbox.LauncherTasks {
			t.Fatalf("launcher has %d tasks, want at most %d", len(tasks), sandbox.LauncherTasks)
		}
	}
}

// Without a PID namespace the launcher's end is not the tree's: it writes to
// the group's cgroup.kill instead, here a pipe.
func TestWithoutPIDNamespaceTheKillFileIsWritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	start(t, "exit7", func(s *sandbox.Spec) {
		s.Isolation, s.KillFile, s.Timer = sandbox.Isolation{}, w, time.Millisecond
	})
	w.Close()
	if got := readLine(t, r); got != "1" {
		t.Errorf("kill file got %q", got)
	}
}
