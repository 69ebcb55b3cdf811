package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// ahead is a request for processes that wait for their calls.
func ahead(tool string, n int) supervisor.Request {
	r := request(tool, `{}`)
	r.Limits.Pids = 500
	r.Prestart = n
	return r
}

// marked is one whose processes can be found by the mark.
func marked(t *testing.T, tool string, n int) (r supervisor.Request, mark string) {
	r = ahead(tool, n)
	mark = fmt.Sprintf("WAITING_FOR=%s.%s", os.Getenv(runVar), strings.ReplaceAll(t.Name(), "/", "."))
	r.Env = []string{mark}
	return r, mark
}

// awaitParked waits until so many processes wait.
func awaitParked(t *testing.T, host testHost, n int) {
	t.Helper()
	eventually(t, "the processes wait", func() bool { return host.Prestarted().Processes == n })
}

// A process that was started before its call serves that one, and no other: neither
// its memory nor its workspace knows of another call, and its pid is gone.
func TestAPrestartedProcessServesOneCall(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "workspace", 1)
	host.Prestart([]supervisor.Request{r})
	used := map[int]bool{}
	for range times(3, 10, 200) {
		awaitParked(t, host, 1)
		pids := processes.WithEnvironment(mark)
		if len(pids) != 1 || used[pids[0]] {
			t.Fatalf("waiting are %v, of which some have served: %v", pids, used)
		}
		used[pids[0]] = true
		got := call(t, host, r)
		wantServed(t, got, api.InstancePrestarted, 1)
		if slices.Contains(processes.WithEnvironment(mark), pids[0]) {
			t.Error("the process lives on")
		}
		if got.Kill.Stage != "none" || got.Timing.StartMs > got.Timing.ElapsedMs {
			t.Errorf("kill %+v, timing %+v", got.Kill, got.Timing)
		}
	}
	if p := host.Prestarted(); p.Missed != 0 || p.Died != 0 || p.Taken != int64(len(used)) {
		t.Errorf("%+v, %d calls", p, len(used))
	}
}

// Without being declared they wait from the first call on.
func TestPrestartBeginsWithTheFirstCall(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := ahead("count", 2)
	wantServed(t, call(t, host, r), api.InstanceFresh, 1)
	awaitParked(t, host, 2)
	wantServed(t, call(t, host, r), api.InstancePrestarted, 1)
	other := r
	other.Limits.MemoryBytes = 300 << 20 // what it was not started for
	wantServed(t, call(t, host, other), api.InstanceFresh, 1)
}

// One that is being started when nobody is to have it any more ends, too.
func TestEndIdleWhileOneIsStarted(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "count", 2)
	for range times(3, 20, 200) {
		wantServed(t, call(t, host, r), api.InstanceFresh, 1)
		eventually(t, "one is started", func() bool { return len(processes.WithEnvironment(mark)) > 0 })
		host.EndIdle()
		eventually(t, "it is gone", func() bool { return len(processes.WithEnvironment(mark)) == 0 })
	}
}

// What cannot be the same for all calls is not started before one; the call works.
func TestWhyNothingIsPrestarted(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	for name, test := range map[string]struct {
		change func(*supervisor.Request)
		why    string
	}{
		"command": {func(r *supervisor.Request) {
			r.Tool, r.Command = supervisor.Tool{}, &supervisor.Command{Argv: []string{"true"}}
		}, "a plain command"},
		"keep":      {func(r *supervisor.Request) { r.Keep = &supervisor.Keep{} }, "kept for later calls"},
		"secrets":   {func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "0123456789"}} }, "secrets"},
		"lock":      {func(r *supervisor.Request) { r.Lock.File = filepath.Join(dir, "lock") }, "keeps data"},
		"workspace": {func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Workspace: dir} }, "keeps data"},
		"network":   {func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Network: sandbox.NetworkHost} }, "network"},
		"tier":      {func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Tier: sandbox.TierNone} }, "no sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "workspace" && os.Getenv("TOOLHOST_VM") != "" {
				t.Skip("needs a file system with id-mapped mounts, which the VM does not have")
			}
			r := ahead("count", 2)
			test.change(&r)
			e, err := host.Explain(t.Context(), r)
			if err != nil || !strings.Contains(e.NotPrestarted, test.why) {
				t.Fatalf("explained by %+v, %v", e, err)
			}
			host.Prestart([]supervisor.Request{r})
			got := call(t, host, r)
			wantStatus(t, got, api.StatusOK)
			if p := host.Prestarted(); got.Instance != api.InstanceFresh || p.Processes+int(p.Taken+p.Missed) != 0 {
				t.Errorf("%s, and %+v", got.Instance, p)
			}
		})
	}
	if e, err := host.Explain(t.Context(), ahead("count", 2)); err != nil || e.NotPrestarted != "" || e.Prestart != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	none := newHost(t, supervisor.Config{Prestart: supervisor.PrestartBudget{Processes: -1}})
	wantServed(t, call(t, none, ahead("count", 2)), api.InstanceFresh, 1)
}

// However many want one, each has a process of its own.
func TestManyCallersOfOnePrestarted(t *testing.T) {
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 8, Wait: time.Minute}})
	r := ahead("workspace", 1)
	host.Prestart([]supervisor.Request{r})
	awaitParked(t, host, 1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got := call(t, host, r)
			wantServed(t, got, got.Instance, 1)
		})
	}
	all.Wait()
	if p := host.Prestarted(); p.Taken == 0 || p.Taken+p.Missed != 8 {
		t.Errorf("%+v", p)
	}
}

// One that dies while it waits is nobody's failure, and is made good.
func TestAPrestartedProcessDies(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "count", 1)
	host.Prestart([]supervisor.Request{r})
	awaitParked(t, host, 1)
	for _, pid := range processes.WithEnvironment(mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(t, "its death is noticed", func() bool { return host.Prestarted().Died == 1 })
	wantServed(t, call(t, host, r), api.InstanceFresh, 1)
	awaitParked(t, host, 1)
	wantServed(t, call(t, host, r), api.InstancePrestarted, 1)
}

// A call that comes while one dies has either that death for its own, or none.
func TestTakenWhileItDies(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "count", 1)
	host.Prestart([]supervisor.Request{r})
	awaitParked(t, host, 1)
	pids := processes.WithEnvironment(mark)
	var both sync.WaitGroup
	both.Go(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	got := call(t, host, r)
	both.Wait()
	if got.Status != api.StatusOK && (got.Status != api.StatusCrashed || got.Instance != api.InstancePrestarted) {
		t.Errorf("%s of a %s process: %s", got.Status, got.Instance, got.Message)
	}
}

// What is no longer declared ends, but for what a call has.
func TestPrestartReplacesWhatWasDeclared(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "stream", 2)
	r.Arguments = []byte(`{"n":1}`)
	host.Prestart([]supervisor.Request{r})
	awaitParked(t, host, 2)
	c := startWaiting(t, host, r)
	host.Prestart([]supervisor.Request{ahead("count", 1)})
	host.EndIdle()
	eventually(t, "only the call's process is left", func() bool {
		stocks := host.Prestarted().Stocks
		return len(processes.WithEnvironment(mark)) == 1 && len(stocks) == 1 && stocks[0].Waiting == 1
	})
	c.Abort(api.ReasonUser)
	got := c.Result()
	wantStatus(t, got, api.StatusCancelled)
	if got.Text() != "message 0\n" || got.Instance != api.InstancePrestarted {
		t.Errorf("text %q of a %s process", got.Text(), got.Instance)
	}
	eventually(t, "nothing of it is left", func() bool { return len(processes.WithEnvironment(mark)) == 0 })
}

// Fewer may be declared than before.
func TestPrestartOfFewer(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, n := range []int{3, 1, 2} {
		r, mark := marked(t, "count", n)
		host.Prestart([]supervisor.Request{r})
		eventually(t, "so many wait", func() bool {
			p := host.Prestarted()
			return len(p.Stocks) == 1 && p.Stocks[0].Want == n && p.Processes == n && len(processes.WithEnvironment(mark)) == n
		})
	}
}

// An abort at any moment of the taking leaves nothing.
func TestAbortWhileOneIsTaken(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r, mark := marked(t, "silent", 2)
	r.Grace = 1
	host.Prestart([]supervisor.Request{r})
	for i := range times(5, 20, 200) {
		eventually(t, "one waits", func() bool { return host.Prestarted().Processes > 0 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		got := host.Call(ctx, r)
		cancel()
		wantStatus(t, got, api.StatusCancelled)
	}
	host.Prestart(nil)
	eventually(t, "nothing is left", func() bool { return len(processes.WithEnvironment(mark)) == 0 })
}

// The hash, and what is behind a path, hold when a process is taken, not only when it
// was started: no call is served by one that was started for what has changed.
func TestAPrestartedProcessFitsItsCall(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs a file system with id-mapped mounts for the grants, which the VM does not have")
	}
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	size := 0
	copyOf := func(more string) {
		t.Helper()
		raw, err := os.ReadFile(self)
		raw = append(raw, more...)
		size = len(raw)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "new"), raw, 0o755), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "tool"))); err != nil {
			t.Fatal(err)
		}
	}
	granted, entries := filepath.Join(dir, "granted"), 0
	point := func(n int) {
		t.Helper()
		to := strconv.Itoa(n)
		err := errors.Join(os.Mkdir(filepath.Join(dir, to), 0o755), os.RemoveAll(granted), os.Symlink(to, granted))
		for i := range n {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, to, strconv.Itoa(i)), nil, 0o644))
		}
		if entries = n; err != nil {
			t.Fatal(err)
		}
	}
	copyOf("one")
	point(1)
	r := ahead("sees", 1)
	r.Arguments = fmt.Appendf(nil, `{"text":%q}`, granted)
	r.Tool.Path, r.Sandbox = filepath.Join(dir, "tool"), &sandbox.Policy{Read: []string{granted}}
	host.Prestart([]supervisor.Request{r})
	for name, change := range map[string]func(){"the program": func() { copyOf("three") }, "the folder": func() { point(2) }} {
		awaitParked(t, host, 1)
		change()
		eventually(t, name+" has a process again", func() bool {
			got := call(t, host, r)
			wantServed(t, got, got.Instance, entries)
			if got.Text() != fmt.Sprint(size) {
				t.Errorf("a %s process has run a program of %s bytes, and it has %d", got.Instance, got.Text(), size)
			}
			return got.Instance == api.InstancePrestarted
		})
	}
}

// What the program does before its call is not the call's, and not without bounds.
func TestWhatIsDoneBeforeTheCall(t *testing.T) {
	const limit = 4 * startBurn // for an emulated machine takes as long as that for the rest of a start
	host := newHost(t, supervisor.Config{})
	r := ahead("noisy", 1)
	r.Env = []string{startVar + "=burn"}
	r.Limits.CPUTime, r.Limits.CPUPercent = limit, supervisor.Unlimited
	host.Prestart([]supervisor.Request{r})
	awaitParked(t, host, 1)
	burns := r
	burns.Tool.Name = "burn"
	killed := call(t, host, burns)
	wantStatus(t, killed, api.StatusCPULimit)
	if used := killed.Usage.CPUUserMs + killed.Usage.CPUSystemMs; killed.Instance != api.InstancePrestarted || used < (limit-startBurn/2).Milliseconds() {
		t.Errorf("a %s process was killed after %d ms", killed.Instance, used)
	}
	awaitParked(t, host, 1)
	r.Arguments = []byte(`{"text":"now"}`)
	got := call(t, host, r)
	wantStatus(t, got, api.StatusOK)
	if used := got.Usage.CPUUserMs + got.Usage.CPUSystemMs; got.Instance != api.InstancePrestarted || used > startBurn.Milliseconds()/2 || got.Output.Stderr.Head != "to stderr: now\n" {
		t.Errorf("a %s process has used %d ms and written %q", got.Instance, used, got.Output.Stderr.Head)
	}

	flood := ahead("noisy", 1)
	flood.Env = []string{startVar + "=flood"}
	host.Prestart([]supervisor.Request{flood})
	eventually(t, "nothing waits of what floods", func() bool {
		s := host.Prestarted().Stocks
		return len(s) == 1 && s[0].Waiting == 0
	})
	flood.Arguments = r.Arguments
	wantStatus(t, call(t, host, flood), api.StatusOK)
}

// The budget is for all together.
func TestPrestartBudget(t *testing.T) {
	host := newHost(t, supervisor.Config{Prestart: supervisor.PrestartBudget{Processes: 2}})
	first, second := ahead("count", 2), ahead("count", 2)
	second.Env = []string{"OTHER=1"}
	call(t, host, first)
	awaitParked(t, host, 2)
	call(t, host, second)
	eventually(t, "both have one", func() bool {
		s := host.Prestarted().Stocks
		return len(s) == 2 && s[0].Waiting == 1 && s[1].Waiting == 1
	})
	small := newHost(t, supervisor.Config{Prestart: supervisor.PrestartBudget{MemoryBytes: 1}})
	call(t, small, first)
	if p := small.Prestarted(); p.Processes != 0 {
		t.Errorf("%+v", p)
	}
}
