package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// needShell skips a test where there is no shell, as in the VM.
func needShell(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs a shell: ", err)
	}
}

// script makes a plugin of shell commands, and a request for it that may write to
// the host.
func script(t *testing.T, commands string) supervisor.Request {
	t.Helper()
	needShell(t)
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+commands+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return supervisor.Request{
		Tool: supervisor.Tool{Path: path}, Env: []string{"LOG=" + path + ".log"},
		Sandbox: &supervisor.Policy{Tier: "none"}, Timeouts: within(5 * time.Second),
	}
}

func starts(r supervisor.Request) int {
	raw, _ := os.ReadFile(r.Tool.Path + ".log")
	return strings.Count(string(raw), "started")
}

// Who wants the same Describe shares it; it goes on for those who are left, and
// what has failed rests until its file or its settings are others.
func TestDescribesAreShared(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	hung := script(t, "echo started >>$LOG; exec sleep 60")
	hung.Timeouts = within(5 * time.Second) // in which a shell starts on a loaded machine
	var all sync.WaitGroup
	results := make([]*api.Result, 5)
	for i := range results {
		all.Go(func() { results[i] = host.Call(t.Context(), hung) })
	}
	wait.Until(t, "it is described", func() bool { return starts(hung) > 0 })
	all.Wait()
	for _, r := range results {
		wantStatus(t, r, api.StatusTimeout)
	}
	r := host.Call(t.Context(), hung)
	wantStatus(t, r, api.StatusTimeout)
	if starts(hung) != 1 || !strings.Contains(r.Message, "it is tried again in") || !strings.Contains(r.Retry.Hint, "call again in") || r.Retry.AfterMs <= 0 || r.Retry.SideEffects != "none" {
		t.Errorf("%d starts; %s; %+v", starts(hung), r.Message, r.Retry)
	}
	other := hung
	other.Limits.MemoryBytes = 100 << 20
	wantStatus(t, host.Call(t.Context(), other), api.StatusTimeout)
	if starts(hung) != 2 {
		t.Errorf("%d starts with other limits, want 2", starts(hung))
	}
	if err := os.WriteFile(hung.Tool.Path, []byte("#!/bin/sh\necho started >>$LOG\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := host.Call(t.Context(), hung); starts(hung) != 3 || strings.Contains(r.Message, "tried again") {
		t.Errorf("%d starts of another file, want 3; %s", starts(hung), r.Message)
	}
}

// A Describe that a call's short timeout has ended says nothing about the tool:
// the next call has its whole time.
func TestAHastyDescribeDoesNotRest(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	slow := script(t, "echo started >>$LOG; exec sleep 60")
	slow.Timeouts = within(20 * time.Millisecond)
	for range 5 {
		r := host.Call(t.Context(), slow)
		wantStatus(t, r, api.StatusTimeout)
		if r.Timing.ElapsedMs < 20 || strings.Contains(r.Message, "tried again") {
			t.Errorf("timed out after %d ms of 20: %s", r.Timing.ElapsedMs, r.Message)
		}
	}
}

// Describes that hang take no slot of a call, nor one another's.
func TestDescribesTakeNoSlots(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 1}})
	var all sync.WaitGroup
	var ended atomic.Int64
	hung := make([]supervisor.Request, 9)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range hung {
		hung[i] = script(t, "echo started >>$LOG; exec sleep 60")
		hung[i].Timeouts = within(time.Minute)
		all.Go(func() {
			host.Call(ctx, hung[i])
			ended.Add(1)
		})
	}
	wait.Until(t, "all are described at once", func() bool {
		return ended.Load() == 0 && !slices.ContainsFunc(hung, func(r supervisor.Request) bool { return starts(r) == 0 })
	})
	running, waiting := host.Host().Running, host.Host().Waiting
	if running+waiting > 0 {
		t.Errorf("%d calls run and %d wait while tools are described", running, waiting)
	}
	cancel()
	all.Wait()
}

// A Describe that failed tells of what it had and took.
func TestAFailedDescribeTellsTheTruth(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	hog := script(t, `echo started >>$LOG; x=x; while :; do x=$x$x; done`)
	hog.Limits.MemoryBytes = 48 << 20
	_, r := host.Describe(t.Context(), hog)
	if host.Controller("memory") {
		wantStatus(t, r, api.StatusOOM)
		if !strings.Contains(r.Message, "its limit is 50331648 bytes") || r.Limits.MemoryBytes != 48<<20 {
			t.Errorf("%s; limits %+v", r.Message, r.Limits)
		}
	}
	bad := request("work", `{}`)
	bad.Tool = supervisor.Tool{Path: self, Args: []string{"describe-twice"}}
	_, r = host.Describe(t.Context(), bad)
	wantStatus(t, r, api.StatusProtocolError)
	if r.Timing.ElapsedMs == 0 || r.Retry.SideEffects != "possible" || strings.Contains(r.Message, "after 0s") || strings.Contains(r.Message, "changed nothing") {
		t.Errorf("%s; timing %+v; retry %+v", r.Message, r.Timing, r.Retry)
	}
}
