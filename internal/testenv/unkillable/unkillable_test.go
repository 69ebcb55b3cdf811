package unkillable

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const roleVar = "UNKILLABLE_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		for {
			_ = syscall.Pause()
		}
	}
	os.Exit(m.Run())
}

func victim(t *testing.T) (cmd *exec.Cmd, ended chan error) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVar + "=wait"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, ended
}

func pending(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "ShdPnd:\t")
	return strings.HasPrefix(rest, "0000000000000100")
}

func TestSIGKILLEndsItOnlyAfterThaw(t *testing.T) {
	cmd, ended := victim(t)
	thaw := Freeze(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 50 { // SIGKILL waits, and goes on waiting
		if !pending(t, cmd.Process.Pid) {
			t.Fatal("the signal was taken")
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	default:
	}
	thaw()
	wantKilled(t, ended)
	thaw() // again: nothing
}

// Who is not killed by the test is killed by thaw.
func TestThawKills(t *testing.T) {
	cmd, ended := victim(t)
	Freeze(t, cmd.Process.Pid)()
	wantKilled(t, ended)
}

// The guard undoes all when the test cannot.
func TestDeathOfTheTestThaws(t *testing.T) {
	cmd, ended := victim(t)
	f, err := newFreezer()
	if err != nil {
		t.Skipf("missing: a cgroup v1 freezer: %v", err)
	}
	defer f.close()
	if err := f.write("cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if err := f.write(stateFile, "FROZEN"); err != nil {
		t.Fatal(err)
	}
	_ = f.lifeline.Close() // as the kernel does at our death
	wantKilled(t, ended)
	if err := f.guard.Wait(); err != nil {
		t.Error(err)
	}
	if f.read(stateFile) != "" {
		t.Error("the cgroup is still there")
	}
}

func wantKilled(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if exit, ok := err.(*exec.ExitError); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", err)
		}
	case <-wait.Context(t).Done():
		t.Fatal("it did not end")
	}
}
