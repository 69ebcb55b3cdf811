package supervisor_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

// The test binary plays the tools: started as a plugin it serves them, and
// with a role in its environment it is one of their children.
func TestMain(m *testing.M) {
	supervisor.RelayMain()
	playServer()
	if role := os.Getenv(roleVar); role != "" {
		playChild(role)
	}
	if host := os.Getenv(hostVar); host != "" && os.Getenv("TOOLHOST_PLUGIN") == "" {
		var dir string
		var n, timeout int
		if _, err := fmt.Sscan(host, &dir, &n, &timeout); err != nil {
			panic(err)
		}
		runHost(dir, n, time.Duration(timeout))
	}
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		if len(os.Args) > 1 {
			playHostile(os.Args[1])
		}
		atStart(os.Getenv(startVar))
		plugin.Serve(testTools()...)
		return
	}
	if err := os.Setenv(runVar, rand.Text()); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// startVar is what a tool does before it answers, which takes startBurn of CPU time.
const (
	startVar  = "SUPERVISOR_TEST_AT_START"
	startBurn = 400 * time.Millisecond
)

func atStart(what string) {
	switch what {
	case "burn":
		fmt.Fprintln(os.Stderr, "starting")
		for {
			var used syscall.Rusage
			if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil && time.Duration(used.Utime.Nano()+used.Stime.Nano()) > startBurn {
				return
			}
		}
	case "flood":
		os.Stderr.Write(make([]byte, 1<<20))
	}
}

var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

// newHost makes a supervisor that the test closes.
func newHost(t testing.TB, config supervisor.Config) testHost {
	t.Helper()
	if config.RuntimeDir == "" {
		config.RuntimeDir = t.TempDir()
	}
	if config.Profiles == nil {
		config.Profiles = patient()
	}
	host, err := openHost(t, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return host
}

// within is an operator's timeout of the call.
func within(d time.Duration) []budget.Ask {
	return []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: d, Detail: "test"}}
}

// patient gives a tool's start the longest time that may be asked for: tests
// start many at once, beside other tests.
func patient() map[string][]budget.Ask {
	return map[string][]budget.Ask{budget.Registration: within(2 * time.Minute)}
}

func request(tool, arguments string) supervisor.Request {
	r := supervisor.Request{
		Tool: supervisor.Tool{Path: self, Name: tool}, Arguments: json.RawMessage(arguments),
		Timeouts: within(time.Minute), Grace: 200 * time.Millisecond,
	}
	if tool == "children" { // Go programs, each with as many threads as it likes
		r.Limits.Pids = 500
		r.Env = []string{runMark()}
	}
	return r
}

// hangLimit is only there to end a test that hangs.
const hangLimit = 2 * time.Minute

func call(t testing.TB, host testHost, r supervisor.Request) *api.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangLimit)
	defer cancel()
	result := host.Call(ctx, r)
	if result.Kill.Survivors != 0 {
		t.Errorf("%d survivors", result.Kill.Survivors)
	}
	return result
}

// slow is true where heavy work takes minutes: with -short, in the VM, whose processor
// is emulated, and where internal/testenv/all has found a slow machine.
func slow() bool {
	return testing.Short() || os.Getenv("TOOLHOST_VM") != "" || os.Getenv("TOOLHOST_TEST_SLOW") != ""
}

// times is how often something is done: few times where it is slow, and many with make soak.
func times(few, some, many int) int {
	switch {
	case os.Getenv("TOOLHOST_SOAK_RUNS") != "":
		return many
	case slow():
		return few
	}
	return some
}

func wantStatus(t testing.TB, r *api.Result, want api.Status) {
	t.Helper()
	if r.Status != want {
		t.Fatalf("status %s (reason %s), want %s\nmessage: %s\ntool error: %+v\nstderr: %s", r.Status, r.Reason, want, r.Message, r.ToolError, r.Output.Stderr.Head)
	}
}
