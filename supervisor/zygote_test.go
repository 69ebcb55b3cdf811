package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

func zygote(t *testing.T) int {
	t.Helper()
	pid := processes.Zygote()
	if pid == 0 {
		t.Fatal("no zygote among the children")
	}
	return pid
}

// descriptors counts a process's open files, but for networks: a zygote has made some
// for calls to come.
func descriptors(t *testing.T, pid int) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name, _ := os.Readlink(filepath.Join(dir, entry.Name())); !strings.HasPrefix(name, "net:[") {
			n++
		}
	}
	return n
}

// Calls that are killed at each moment of their birth leave nothing, in the
// zygote neither.
func TestCallsKilledAtBirthLeaveNothing(t *testing.T) {
	rounds, beside := times(6, 20, 60), 8
	dir := t.TempDir()
	host := newHost(t, supervisor.Config{RuntimeDir: dir, Admission: supervisor.Admission{Running: beside}})
	first := request("echo", `{"text":"x"}`)
	first.Grace = budget.NoGrace // as of those that follow: a worker has a timer for each length
	wantStatus(t, call(t, host, first), api.StatusOK)
	wait.Until(t, "the first call is freed", func() bool { return allGone(host) })
	pid := zygote(t)
	its := descriptors(t, pid)
	fds, goroutines := open(t)
	for i := range rounds {
		var all sync.WaitGroup
		for j := range beside {
			all.Go(func() {
				r := request("echo", `{"text":"x"}`)
				r.Timeouts, r.Grace = within(time.Duration(1+(i*beside+j)%20)*time.Millisecond), budget.NoGrace
				if result := call(t, host, r); result.Status != api.StatusTimeout && result.Status != api.StatusOK {
					t.Errorf("status %s: %s", result.Status, result.Message)
				}
			})
		}
		all.Wait()
	}
	if now := zygote(t); now != pid {
		t.Errorf("the zygote is %d, was %d", now, pid)
	}
	wait.Until(t, "the zygote has no more files than before", func() bool { return allGone(host) && descriptors(t, pid) <= its })
	wait.Until(t, "no more files and goroutines than before", func() bool {
		gone := allGone(host)
		f, g := open(t)
		return gone && f <= fds && g <= goroutines
	})
	wait.Until(t, "no cgroup is left", func() bool { return allGone(host) })
	if left := sockets(t, dir); left != 0 {
		t.Errorf("%d sockets left", left)
	}
}

// Where the start itself hangs until the call's time is over, nobody knows whether the
// tool had begun, and the message says so.
func TestACallWhoseStartHangs(t *testing.T) {
	host := newHost(t, nothingWaits)
	wantStatus(t, call(t, host, request("echo", `{"text":"x"}`)), api.StatusOK)
	pid := zygote(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	r := request("echo", `{"text":"x"}`)
	r.Timeouts, r.Grace = within(time.Second), budget.NoGrace
	got := call(t, host, r)
	wantStatus(t, got, api.StatusTimeout)
	if !strings.Contains(got.Message, "may not have begun at all: whether there are side effects is not known.") || got.Retry.SideEffects != "possible" {
		t.Errorf("%+v: %s", got.Retry, got.Message)
	}
}
