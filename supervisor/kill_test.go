package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// alive counts the processes of this test binary that play a role.
func alive(t testing.TB) (n int) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range entries {
		raw, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(raw), roleVar+"=") {
			n++
		}
	}
	return n
}

// killed runs a tool with n children of a role to its deadline and checks that
// nothing is left.
func killed(t *testing.T, host *supervisor.Supervisor, role string, n int, change func(*supervisor.Request)) *supervisor.Result {
	t.Helper()
	events := make(chan supervisor.Event, 100)
	r := request("children", fmt.Sprintf(`{"n":%d,"text":%q}`, n, role))
	r.Limits = supervisor.Limits{Pids: 4000, MemoryBytes: 4 << 30, CPUPercent: supervisor.Unlimited}
	r.Events = events
	if change != nil {
		change(&r)
	}
	c := host.Start(t.Context(), r)
	waitFor(t, events, supervisor.EventProgress)
	c.Abort(supervisor.AbortUser)
	result := c.Result()
	wantStatus(t, result, supervisor.StatusCancelled)
	if result.Kill.Survivors != 0 || result.Kill.Stage != "kill" {
		t.Errorf("kill %+v", result.Kill)
	}
	if left := alive(t); left != 0 {
		t.Errorf("%d processes outlived the kill", left)
	}
	return result
}

func TestKillLeavesNothing(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, test := range []struct {
		role string
		n    int
	}{
		{"deaf", 50}, {"deaf", 200}, {"orphan", 50}, {"stopped", 30}, {"handler", 20}, {"treadmill", 6},
	} {
		if os.Getenv("TOOLHOST_VM") != "" {
			test.n = min(test.n, 60) // 1,200 threads take its one emulated CPU longer to bury than a kill may take
		}
		t.Run(test.role+strconv.Itoa(test.n), func(t *testing.T) {
			result := killed(t, host, test.role, test.n, nil)
			if test.role == "deaf" && result.Kill.Reaped != test.n+1 {
				t.Errorf("%d reaped, want %d: %s; pids %d; stderr %s", result.Kill.Reaped, test.n+1, result.Text(), result.Usage.PidsPeak, result.Output.Stderr.Head)
			}
		})
	}
}

// A quota delays SIGKILL unless it is lifted first.
func TestKillUnderTwoPercentOfCPU(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	percent := int64(2)
	if slow() {
		percent = 20 // the children must start under it, too
	}
	result := killed(t, host, "burn", 3, func(r *supervisor.Request) {
		r.Limits.CPUPercent, r.Timeouts = percent, within(10*time.Minute)
	})
	t.Logf("SIGKILL to empty: %d µs", result.Kill.LatencyUs)
}

// The tool's process ends at once; a deaf grandchild holds its pipes.
func TestWrapperExitsFirst(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	result := call(t, host, request("children", `{"n":4,"text":"orphan","line":true}`))
	wantStatus(t, result, supervisor.StatusOK)
	if left := alive(t); left != 0 {
		t.Errorf("%d processes left after the answer", left)
	}
}
