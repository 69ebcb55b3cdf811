package supervisor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// kept is a request for a process that lives on.
func kept(tool, arguments string, keep supervisor.Keep) supervisor.Request {
	r := request(tool, arguments)
	r.Keep = &keep
	r.Limits.Pids = 500
	return r
}

func wantServed(t *testing.T, r *api.Result, instance string, n int) {
	t.Helper()
	wantStatus(t, r, api.StatusOK)
	if want := fmt.Sprintf(`{"n":%d}`, n); string(r.Structured) != want || r.Instance != instance {
		t.Errorf("%s process has served %s, want %s %s", r.Instance, r.Structured, instance, want)
	}
}

func TestKeptProcessServesLaterCalls(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := kept("count", `{}`, supervisor.Keep{})
	wantServed(t, call(t, host, r), "fresh", 1)
	second := call(t, host, r)
	wantServed(t, second, "reused", 2)
	if second.Kill.Stage != "none" || second.Kill.Cause != "" {
		t.Errorf("kill %+v", second.Kill)
	}
	r.Env = []string{"OTHER=1"}
	wantServed(t, call(t, host, r), "fresh", 1) // another environment is another process
	if n := host.Host().Kept; n != 2 {
		t.Errorf("%d kept", n)
	}
}

// A call under the stricter filter is not served by a process without it.
func TestAKeptProcessHasOneFilter(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := kept("count", `{}`, supervisor.Keep{})
	r.Sandbox = &sandbox.Policy{}
	wantServed(t, call(t, host, r), "fresh", 1)
	wantServed(t, call(t, host, r), "reused", 2)
	r.Sandbox = &sandbox.Policy{Strict: true}
	strict := call(t, host, r)
	wantServed(t, strict, "fresh", 1)
	if !strict.Sandbox.Strict {
		t.Errorf("receipt %+v", strict.Sandbox)
	}
}

// A process is kept for what its calls were granted when it was started: not for
// another lock, and not for another folder under the same path.
func TestAKeptProcessHasOneLockAndOnePolicy(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	r := kept("count", `{}`, supervisor.Keep{})
	r.Lock.File = filepath.Join(dir, "lock1")
	wantServed(t, call(t, host, r), "fresh", 1)
	wantServed(t, call(t, host, r), "reused", 2)
	r.Lock.File = filepath.Join(dir, "lock2")
	wantServed(t, call(t, host, r), "fresh", 1)
	r.Lock.File = ""
	wantServed(t, call(t, host, r), "fresh", 1)

	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs a file system with id-mapped mounts for the grants, which the VM does not have")
	}
	granted := t.TempDir()
	link := filepath.Join(granted, "current")
	point := func(to string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(granted, to), 0o755), os.RemoveAll(link), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
	}
	point("v1")
	r.Sandbox = &sandbox.Policy{Read: []string{link}}
	wantServed(t, call(t, host, r), "fresh", 1)
	wantServed(t, call(t, host, r), "reused", 2)
	point("v2")
	moved := call(t, host, r)
	wantServed(t, moved, "fresh", 1)
	if len(moved.Warnings) != 1 || !strings.Contains(moved.Warnings[0], "v2") {
		t.Errorf("warnings %q", moved.Warnings)
	}
	if err := os.Remove(filepath.Join(granted, "v2")); err != nil {
		t.Fatal(err)
	}
	point("v2") // another folder of this name
	wantServed(t, call(t, host, r), "fresh", 1)
}

func TestKeptProcessEndsWhenIdle(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := kept("count", `{}`, supervisor.Keep{Idle: 20 * time.Millisecond})
	wantServed(t, call(t, host, r), "fresh", 1)
	eventually(t, "the idle process ends", func() bool { return host.Host().Kept == 0 })
	wantServed(t, call(t, host, r), "fresh", 1)
}

func TestKeptProcessServesNoMoreThanItMay(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := kept("count", `{}`, supervisor.Keep{MaxCalls: 2})
	for i := range 5 {
		wantServed(t, call(t, host, r), []string{"fresh", "reused"}[i%2], i%2+1)
	}
}

// An error of the tool is no reason to end it; a deadline is.
func TestKeptProcessAfterFailures(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	on := func(tool string) supervisor.Request { return kept(tool, `{}`, supervisor.Keep{}) }
	wantServed(t, call(t, host, on("count")), "fresh", 1)
	wantStatus(t, call(t, host, on("fail")), api.StatusToolError)
	wantStatus(t, call(t, host, on("panic")), api.StatusToolError)
	wantServed(t, call(t, host, on("count")), "reused", 2)
	late := on("silent")
	late.Timeouts = within(500 * time.Millisecond)
	r := call(t, host, late)
	wantStatus(t, r, api.StatusTimeout)
	if r.Instance != "reused" || r.Kill.Stage != "kill" || r.Kill.Reaped != 1 {
		t.Errorf("instance %s, kill %+v", r.Instance, r.Kill)
	}
	wantServed(t, call(t, host, on("count")), "fresh", 1)
}

func TestKeptProcessDiesBetweenCalls(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	mark := "DYING_OF=" + os.Getenv(runVar)
	r := kept("count", `{}`, supervisor.Keep{})
	r.Env = []string{mark}
	wantServed(t, call(t, host, r), "fresh", 1)
	found := processes.WithEnvironment(mark)
	if len(found) != 1 || syscall.Kill(found[0], syscall.SIGKILL) != nil {
		t.Fatalf("kept are %d", found)
	}
	eventually(t, "the dead process is noticed", func() bool { return host.Host().Kept == 0 })
	wantServed(t, call(t, host, r), "fresh", 1)
}

// The kernel may kill one of its processes alone, and the next call is not served by the rest.
func TestKeptProcessRunsOutOfMemoryBetweenCalls(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	mark := "FILLED_OF=" + os.Getenv(runVar)
	r := kept("children", `{"n":1,"text":"memory on SIGTERM","line":true}`, supervisor.Keep{Idle: time.Hour})
	r.Env, r.Limits.MemoryBytes = []string{mark}, 96<<20
	wantStatus(t, call(t, host, r), api.StatusOK)
	for _, pid := range processes.WithEnvironment(mark) {
		_ = syscall.Kill(pid, syscall.SIGTERM) // the tool itself ignores it
	}
	eventually(t, "what is left of it is ended", func() bool { return host.Host().Kept == 0 })
	if second := call(t, host, r); !second.OK() || second.Instance != "fresh" {
		t.Errorf("%s by a %s process", second.Status, second.Instance)
	}
}

// What one call writes is not another's.
func TestKeptProcessKeepsOutputApart(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for i := range 20 {
		text := fmt.Sprintf("call %d", i)
		r := call(t, host, kept("noisy", fmt.Sprintf(`{"text":%q}`, text), supervisor.Keep{}))
		wantStatus(t, r, api.StatusOK)
		for stream, out := range map[string]api.StreamOutput{"stdout": r.Output.Stdout, "stderr": r.Output.Stderr} {
			if want := "to " + stream + ": " + text + "\n"; out.Head != want {
				t.Errorf("%s %q, want %q", stream, out.Head, want)
			}
		}
	}
}

// One call in flight at a time: others wait in line, and their time does not run.
func TestKeptProcessServesOneAtATime(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	var calls []testCall
	for i := range 4 {
		r := kept([]string{"beat", "count"}[min(i, 1)], `{"n":20}`, supervisor.Keep{})
		r.Timeouts = within(30 * time.Second)
		calls = append(calls, host.Start(t.Context(), r))
	}
	fresh := 0
	for _, c := range calls {
		r := c.Result()
		wantStatus(t, r, api.StatusOK)
		if r.Instance == "fresh" {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d processes were started for calls in one line", fresh)
	}
}

// Who must be killed takes the calls beside him along, and these say why.
func TestCollateral(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	keep := supervisor.Keep{Shared: true}
	wantServed(t, call(t, host, kept("count", `{}`, keep)), "fresh", 1)
	var others []testCall
	for range 2 {
		others = append(others, startWaiting(t, host, kept("stream", `{"n":1}`, keep)))
	}
	culprit := startWaiting(t, host, kept("stream", `{"n":1}`, keep))
	culprit.Abort(api.ReasonUser)
	wantStatus(t, culprit.Result(), api.StatusCancelled)
	for _, c := range others {
		r := c.Result()
		wantStatus(t, r, api.StatusCollateral)
		if r.Text() != "message 0\n" || r.Kill.Cause != "collateral" || r.Code != "ABORTED" || !strings.Contains(r.Message, "another call") {
			t.Errorf("text %q, kill %+v, message %q", r.Text(), r.Kill, r.Message)
		}
	}
	wantServed(t, call(t, host, kept("count", `{}`, keep)), "fresh", 1)
}

// Where shares are apart, the calls of one find nothing of another's in a process, and do
// not end with them. What a process announces is its share's.
func TestKeptProcessesOfShares(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	of := func(share, tool, arguments string, apart bool) supervisor.Request {
		r := kept(tool, arguments, supervisor.Keep{Shared: true})
		r.Share = supervisor.Share{Key: share, Apart: apart}
		return r
	}
	wantServed(t, call(t, host, of("a", "count", `{}`, false)), "fresh", 1)
	wantServed(t, call(t, host, of("b", "count", `{}`, false)), "reused", 2)
	wantServed(t, call(t, host, of("a", "count", `{}`, true)), "fresh", 1)
	wantServed(t, call(t, host, of("b", "count", `{}`, true)), "fresh", 1)
	wantServed(t, call(t, host, of("a", "count", `{}`, true)), "reused", 2)
	used := startWaiting(t, host, of("b", "stream", `{"n":1}`, true))
	culprit := startWaiting(t, host, of("a", "stream", `{"n":1}`, true))
	culprit.Abort(api.ReasonUser)
	wantStatus(t, culprit.Result(), api.StatusCancelled)
	wantServed(t, call(t, host, of("b", "count", `{}`, true)), "reused", 2)
	used.Abort(api.ReasonUser)
	wantStatus(t, used.Result(), api.StatusCancelled)
	if n := host.Host().Kept; n != 1 {
		t.Errorf("%d are kept, want that of all", n)
	}
}

// startWaiting returns once the tool has reported that it hangs.
func startWaiting(t *testing.T, host testHost, r supervisor.Request) testCall {
	t.Helper()
	events := make(chan api.Event, 100)
	r.Events = events
	c := host.Start(t.Context(), r)
	for {
		select {
		case e := <-events:
			if e.Message == "flushed" {
				return c
			}
		case <-c.Done():
			t.Fatalf("over too soon: %+v", c.Result())
		}
	}
}

func TestKeepRefusesWhatMakesNoSense(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	command := kept("", `{}`, supervisor.Keep{})
	command.Tool, command.Command = supervisor.Tool{}, &supervisor.Command{Argv: []string{"true"}}
	files := kept("count", `{}`, supervisor.Keep{})
	files.FilesTo = t.TempDir()
	for _, r := range []supervisor.Request{command, files, kept("count", `{}`, supervisor.Keep{Idle: -1})} {
		result := call(t, host, r)
		wantStatus(t, result, api.StatusStartFailed)
		if result.Reason != "keep" {
			t.Errorf("reason %q: %s", result.Reason, result.Message)
		}
	}
}

// Whatever happens to kept processes, each call has a result of its own and
// nothing stays.
func TestKeptProcessesInDisorder(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: times(2, 6, 6), Queue: 500, Wait: time.Minute}})
	n, seed := times(40, 80, 200), rand.Uint64()
	t.Logf("seed %d", seed)
	tools := []string{"echo", "echo", "echo", "count", "fail", "silent", "wait", "late", "exit", "dying", "signal"}
	var all sync.WaitGroup
	var unkillable atomic.Int64
	for i := range n {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			tool := tools[random.IntN(len(tools))]
			text := fmt.Sprintf("text %d", i)
			arguments, _ := json.Marshal(map[string]any{"text": text})
			if tool == "signal" {
				arguments = []byte(`{"n":9}`)
			}
			r := kept(tool, string(arguments), supervisor.Keep{Shared: i%3 > 0, Idle: time.Duration(i%2*40+1) * time.Millisecond, MaxCalls: 10})
			r.Timeouts, r.Grace = within(time.Duration(1000+random.IntN(500))*time.Millisecond), 20*time.Millisecond
			c := host.Start(t.Context(), r)
			if random.IntN(5) == 0 {
				c.Abort(api.ReasonUser)
			}
			result := c.Result()
			// On a starved machine the end may come later than a call can wait for it.
			if late := result.Status == api.StatusUnkillable; late != (result.Kill.Survivors != 0) {
				t.Errorf("%s is %s: %+v", tool, result.Status, result.Kill)
			} else if late {
				unkillable.Add(1)
			}
			if result.OK() && tool == "echo" && result.Text() != text {
				t.Errorf("text %q, want %q", result.Text(), text)
			}
		})
	}
	all.Wait()
	eventually(t, "all processes end", func() bool { return host.Host().Kept == 0 && host.Host().Stuck == 0 })
	if late := int(unkillable.Load()); late > n/10 {
		t.Errorf("the ends of %d of %d calls came too late", late, n)
	}
}
