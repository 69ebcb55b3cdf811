package supervisor_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/supervisor"
)

// alive counts the processes of this test binary that play a role.
// This run's hosts inherit its name. Their tools, and the children of these,
// have it as an entry of their own.
const runVar, toolVar = "SUPERVISOR_TEST_RUN", "SUPERVISOR_TEST_TOOL_OF"

func runMark() string { return toolVar + "=" + os.Getenv(runVar) }

// alive counts the tools that have children, and these.
func alive() int { return len(processes.WithEnvironment(runMark())) }

// killed runs a tool with n children of a role to its deadline and checks that
// nothing is left.
func killed(t *testing.T, host testHost, role string, n int, change func(*supervisor.Request)) *api.Result {
	t.Helper()
	events := make(chan api.Event, 100)
	r := request("children", fmt.Sprintf(`{"n":%d,"text":%q}`, n, role))
	r.Limits = supervisor.Limits{Pids: 4000, MemoryBytes: 4 << 30, CPUPercent: supervisor.Unlimited}
	r.Events, r.Timeouts = events, within(10*time.Minute)
	if change != nil {
		change(&r)
	}
	c := host.Start(t.Context(), r)
	waitFor(t, events, api.EventProgress)
	c.Abort(api.ReasonUser)
	result := c.Result()
	wantStatus(t, result, api.StatusCancelled)
	if result.Kill.Survivors != 0 || result.Kill.Stage != "kill" {
		t.Errorf("kill %+v", result.Kill)
	}
	if left := alive(); left != 0 {
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
		if slow() { // 1,200 threads take longer to destroy than a kill may take, and under the race detector all of the memory
			test.n = min(test.n, 60)
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
		r.Limits.CPUPercent = percent
	})
	t.Logf("SIGKILL to empty: %d µs", result.Kill.LatencyUs)
}

// The tool's children end at once; deaf grandchildren live on, of whom nobody has
// heard. What holds the tool's pipes is in TestBrokenHandshakes.
func TestWrapperExitsFirst(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	result := call(t, host, request("children", `{"n":4,"text":"orphan","line":true}`))
	wantStatus(t, result, api.StatusOK)
	if left := alive(); left != 0 {
		t.Errorf("%d processes left after the answer", left)
	}
}

// A command is asked once to end, however young it is: later calls find all prepared, and
// are aborted in their first moments.
func TestOneSignalForAYoungCommand(t *testing.T) {
	host := newHost(t, nothingWaits)
	for range 3 {
		events := make(chan api.Event, 100)
		running := host.Start(t.Context(), supervisor.Request{
			Command: &supervisor.Command{Argv: []string{self}}, Env: []string{roleVar + "=counter"}, Events: events,
			Timeouts: within(time.Minute), Grace: 200 * time.Millisecond,
		})
		for e := range events {
			if e.Kind == api.EventOutput {
				break
			}
		}
		running.Abort(api.ReasonUser)
		result := running.Result()
		wantStatus(t, result, api.StatusCancelled)
		if got := result.Output.Stdout.Head; !strings.HasPrefix(got, "r") || strings.Count(got, "t") > 1 {
			t.Errorf("output %q, want that of one SIGTERM", got)
		}
	}
}
