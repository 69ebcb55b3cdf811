package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that is prepared runs as it was asked for, with what is its own alone.
func TestAPreparedCall(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("ask", `{}`)
	p, err := host.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Timeout().Timeout <= 0 || p.Grace() <= 0 {
		t.Errorf("timeout %v, grace %s", p.Timeout(), p.Grace())
	}
	events := make(chan api.Event, 100)
	asked := false
	got := p.Start(t.Context(), supervisor.Own{Events: events, Ask: func(context.Context, supervisor.Question) supervisor.Answer {
		asked = true
		return supervisor.Answer{Denied: api.OutcomeFailed}
	}}).Result()
	if got.Status == api.StatusStartFailed || !asked || len(events) == 0 {
		t.Errorf("%s; asked %v, %d events", got.Message, asked, len(events))
	}
}

// One that is refused cannot be prepared, but for its arguments; each has its result.
func TestAPreparedRefusal(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("echo", `{}`)
	r.Tool.Path = "/nosuch"
	p, err := host.Prepare(t.Context(), r)
	if err == nil {
		t.Error("a tool that is not there is prepared")
	}
	if got, want := p.Start(t.Context(), supervisor.Own{}).Result(), host.Call(t.Context(), r); got.Status != want.Status || got.Message != want.Message {
		t.Errorf("%s, want %s", got.Message, want.Message)
	}
	p, err = host.Prepare(t.Context(), request("echo", `{"unknown":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Start(t.Context(), supervisor.Own{}).Result(); got.Status != api.StatusInvalidArgs {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	p, err = host.Prepare(t.Context(), request("echo", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	p.Close() // one that is given up leaves nothing that Close would wait for
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}

// nothingWaits is for tests that count what is there.
var nothingWaits = supervisor.Config{Prestart: supervisor.PrestartBudget{Processes: -1}}

// The group of a call is there before it starts, and is its processes' then; that of one which
// is given up is removed. Others of the same id have their own.
func TestWarmBeforeTheStart(t *testing.T) {
	host := newHost(t, nothingWaits)
	groups := func(n int) func() bool {
		return func() bool {
			left, err := filepath.Glob(filepath.Join(host.Host().Place, "c-*"))
			return err == nil && len(left) == n
		}
	}
	r := request("echo", `{}`)
	r.ID = "twice"
	if got := host.Call(t.Context(), r); !got.OK() { // what asks for its tools has ended
		t.Fatal(got.Message)
	}
	wait.Until(t, "no group is there", groups(0))
	var both [2]*supervisor.Prepared
	for i := range both {
		p, err := host.Prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		p.WarmUp(nil)
		both[i] = p
	}
	wait.Until(t, "both have a group", groups(2))
	if got := both[0].Start(t.Context(), supervisor.Own{}).Result(); !got.OK() {
		t.Error(got.Message)
	}
	wait.Until(t, "one is gone with its call", groups(1))
	both[1].Close()
	wait.Until(t, "the other is removed", groups(0))
}

// A call that is about to start has its group while it is prepared, whatever it is; one that is
// refused or given up leaves nothing.
func TestAGroupBesideThePreparation(t *testing.T) {
	host := newHost(t, nothingWaits)
	groups := func() int {
		left, err := filepath.Glob(filepath.Join(host.Host().Place, "c-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	plugin, command := request("echo", `{}`), supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}}
	if got := host.Call(t.Context(), plugin); !got.OK() { // what asks for its tools has ended
		t.Fatal(got.Message)
	}
	unknown, refused := command, plugin
	unknown.Command, refused.Arguments = &supervisor.Command{Argv: []string{"/nosuch"}}, []byte(`{"unknown":7}`)
	for name, r := range map[string]supervisor.Request{"a plugin": plugin, "a command": command, "a program that is not there": unknown, "wrong arguments": refused} {
		for _, starts := range []bool{false, true} {
			wait.Until(t, "no group is there", func() bool { return groups() == 0 })
			p, err := host.PrepareAhead(t.Context(), r)
			if err == nil {
				wait.Until(t, "its group is there", func() bool { return groups() == 1 })
			}
			if !starts {
				p.Close()
				continue
			}
			want := host.Call(t.Context(), r)
			if got := p.Start(t.Context(), supervisor.Own{}).Result(); got.Status != want.Status || got.Message != want.Message {
				t.Errorf("%s: %s %s, want %s %s", name, got.Status, got.Message, want.Status, want.Message)
			}
		}
	}
	wait.Until(t, "nothing is left", func() bool { return groups() == 0 })
	r := plugin
	r.Keep = &supervisor.Keep{}
	p, err := host.PrepareAhead(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	select {
	case <-p.Gone():
	default:
		t.Error("a call that may find a process has a group of its own")
	}
}

// A command's process is there before the call starts, and waits: the command begins with
// the call, and never where that is given up.
func TestACommandWaitsForItsStart(t *testing.T) {
	host := newHost(t, nothingWaits)
	for _, starts := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "ran")
		p, err := host.Prepare(t.Context(), supervisor.Request{
			Command: &supervisor.Command{Argv: []string{"sh", "-c", "echo ran >> " + file}}, Sandbox: &supervisor.Policy{Write: []string{filepath.Dir(file)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.WarmUp(nil)
		wait.Until(t, "its process waits", func() bool { return len(processesOf(t, host)) == launcherAndAdapter })
		if _, err := os.Stat(file); err == nil {
			t.Error("the command has run before its call")
		}
		if starts {
			if got := p.Start(t.Context(), supervisor.Own{}).Result(); !got.OK() || got.Instance != api.InstanceFresh {
				t.Errorf("%s %s", got.Message, got.Instance)
			}
		} else {
			p.Close()
		}
		wait.Until(t, "nothing is left", func() bool { return len(processesOf(t, host)) == 0 })
		if raw, _ := os.ReadFile(file); (string(raw) == "ran\n") != starts {
			t.Errorf("started %v: %q", starts, raw)
		}
	}
}

// A call whose beginning goes on record has its processes made meanwhile: its tool begins
// behind that, and never where it fails.
func TestACallWaitsForItsRecord(t *testing.T) {
	host := newHost(t, nothingWaits)
	if got := host.Call(t.Context(), request("echo", `{}`)); !got.OK() { // what asks for its tools has ended
		t.Fatal(got.Message)
	}
	command := supervisor.Request{Command: &supervisor.Command{Argv: []string{"echo", "x"}}}
	for name, test := range map[string]struct {
		r     supervisor.Request
		waits int // processes
	}{"a command": {command, launcherAndAdapter}, "a plugin": {request("echo", `{}`), 0}} {
		for _, failed := range []error{nil, errors.New("the disk is full")} {
			r, events := test.r, make(chan api.Event, 100)
			r.Events = events
			r.OnRecord = func(context.Context) error {
				wait.Until(t, name+" waits", func() bool { return len(processesOf(t, host)) == test.waits })
				if list := kindsOf(events); slices.Contains(list, api.EventStarted) {
					t.Errorf("%s has begun: %q", name, list)
				}
				return failed
			}
			if got := host.Call(t.Context(), r); got.OK() != (failed == nil) || failed != nil && (got.Status != api.StatusStartFailed || got.Reason != api.ReasonHost || got.Retry.SideEffects != "none") {
				t.Errorf("%s, %v: %s %s %s", name, failed, got.Status, got.Retry.SideEffects, got.Message)
			}
			if left := processesOf(t, host); failed != nil && len(left) != 0 {
				t.Errorf("%s: %d are left", name, len(left))
			}
			wait.Until(t, "nothing is left", func() bool { return len(processesOf(t, host)) == 0 })
			if list := kindsOf(events); slices.Contains(list, api.EventStarted) != (failed == nil) {
				t.Errorf("%s, %v: %q", name, failed, list)
			}
		}
	}
}

// A call that is aborted while it waits for its record has ended when nothing that was made
// meanwhile is left.
func TestAnAbortBesideTheRecordLeavesNothing(t *testing.T) {
	host := newHost(t, nothingWaits)
	for range times(5, 20, 100) {
		waits := make(chan struct{})
		r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"echo", "x"}}}
		r.OnRecord = func(ctx context.Context) error {
			wait.Until(t, "its process is there", func() bool { return len(processesOf(t, host)) == launcherAndAdapter })
			close(waits)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		call := host.Start(t.Context(), r)
		<-waits
		call.Abort(api.ReasonUser)
		if got := call.Result(); got.Status != api.StatusCancelled || got.Retry.SideEffects != "none" || len(processesOf(t, host)) != 0 {
			t.Fatalf("%s, %s, %d processes are left: %s", got.Status, got.Retry.SideEffects, len(processesOf(t, host)), got.Message)
		}
	}
}

// What a call may run for is asked once it has its slot.
func TestWhatIsLeftAfterTheWaitForASlot(t *testing.T) {
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 1}})
	r := request("echo", `{}`)
	for _, spent := range []error{nil, errors.New("the turn's time is used up")} {
		r.Left = func() (time.Duration, error) {
			if running := host.Health().Running; running != 1 {
				t.Errorf("%d calls have a slot", running)
			}
			return 20 * time.Second, spent
		}
		got := host.Call(t.Context(), r)
		if spent == nil && (!got.OK() || *got.Timing.TimeoutMs != 20_000) {
			t.Errorf("%s, %+v", got.Status, got.Timing)
		}
		if spent != nil && (got.Status != api.StatusStartFailed || got.Reason != api.ReasonHost || got.Retry.SideEffects != "none") {
			t.Errorf("%s (%s), side effects %s", got.Status, got.Reason, got.Retry.SideEffects)
		}
	}
}

// kindsOf takes the events that are there.
func kindsOf(events <-chan api.Event) (list []api.EventKind) {
	for {
		select {
		case e := <-events:
			list = append(list, e.Kind)
		default:
			return list
		}
	}
}

const launcherAndAdapter = 2

// processesOf are the processes of all calls.
func processesOf(t *testing.T, host testHost) (pids []int) { return processesIn(t, host, "c-*") }

func processesIn(t *testing.T, host testHost, groups string) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join(host.Host().Place, groups, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		raw, _ := os.ReadFile(list) // one that has gone has none
		for pid := range strings.FieldsSeq(string(raw)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// A process that has ended while it waited costs its call nothing: the call has another.
func TestACommandWhoseProcessHasEnded(t *testing.T) {
	host := newHost(t, nothingWaits)
	p, err := host.Prepare(t.Context(), supervisor.Request{ID: "ended", Command: &supervisor.Command{Argv: []string{"echo", "ran"}}})
	if err != nil {
		t.Fatal(err)
	}
	p.WarmUp(nil)
	wait.Until(t, "its process waits", func() bool { return len(processesOf(t, host)) == launcherAndAdapter })
	both := processesOf(t, host)
	for _, pid := range both {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one ends with the other
	}
	for _, pid := range both { // its group is empty somewhat earlier
		wait.Until(t, "it has ended", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
	if got := p.Start(t.Context(), supervisor.Own{}).Result(); !got.OK() {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	wait.Until(t, "nothing is left", func() bool {
		left, err := filepath.Glob(filepath.Join(host.Host().Place, "c-*"))
		return err == nil && len(left) == 0
	})
}
