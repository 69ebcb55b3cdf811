package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// holding starts a call that runs on until ctx ends, and returns once it runs.
func holding(t *testing.T, host testHost, ctx context.Context, lock supervisor.Lock) testCall {
	t.Helper()
	r := request("wait", `{}`)
	events := make(chan api.Event, 64)
	r.Lock, r.Events, r.Grace = lock, events, 10*time.Millisecond
	c := host.Start(ctx, r)
	for e := range events {
		if e.Kind == api.EventStarted {
			return c
		}
		if e.Kind == api.EventFinished || e.Kind == api.EventFailed {
			t.Fatalf("it did not run: %s", c.Result().Message)
		}
	}
	return c
}

// Two supervisors are as two processes: each opens the lock by itself.
func TestALockKeepsCallsOfAllHostsApart(t *testing.T) {
	one := newHost(t, supervisor.Config{})
	other := newHost(t, supervisor.Config{Admission: supervisor.Admission{Wait: 100 * time.Millisecond}})
	lock := supervisor.Lock{File: filepath.Join(t.TempDir(), "lock")}
	shared := supervisor.Lock{File: lock.File, Shared: true}
	quick := func(l supervisor.Lock, timeout time.Duration) *api.Result {
		r := request("echo", `{}`)
		r.Lock, r.Timeouts = l, within(timeout)
		return call(t, other, r)
	}
	wantStatus(t, quick(lock, time.Minute), api.StatusOK) // which also describes
	for _, test := range []struct {
		holds, wants supervisor.Lock
		status       api.Status
	}{
		{lock, lock, api.StatusOverloaded},
		{lock, shared, api.StatusOverloaded},
		{shared, lock, api.StatusOverloaded},
		{shared, shared, api.StatusOK},
		{lock, supervisor.Lock{}, api.StatusOK},
	} {
		ctx, leave := context.WithCancel(t.Context())
		holder := holding(t, one, ctx, test.holds)
		timeout := time.Minute
		if test.status != api.StatusOK {
			timeout = 200 * time.Millisecond
		}
		r := quick(test.wants, timeout)
		if wantStatus(t, r, test.status); r.Status != api.StatusOK {
			if r.Reason != "data" || !r.Retry.Retryable || !strings.Contains(r.Message, "was not called: another call or a kept process has held the tool's data for 200ms") {
				t.Errorf("reason %q, retryable %t: %s", r.Reason, r.Retry.Retryable, r.Message)
			}
		}
		leave()
		wantStatus(t, holder.Result(), api.StatusCancelled)
		wantStatus(t, quick(test.wants, time.Minute), api.StatusOK) // a lock ends with its call
	}
}

// A process that is kept has the data between its calls, until somebody else wants them: a
// call that needs another process, or one of another host. While it is in use it has them.
func TestAKeptProcessGivesUpTheLock(t *testing.T) {
	one := newHost(t, supervisor.Config{})
	other := newHost(t, supervisor.Config{Admission: supervisor.Admission{Wait: 50 * time.Millisecond}})
	r := kept("count", `{}`, supervisor.Keep{Idle: time.Hour})
	r.Lock = supervisor.Lock{File: filepath.Join(t.TempDir(), "lock")}
	r.Timeouts = within(time.Minute)
	wantServed(t, call(t, one, r), "fresh", 1)
	wantServed(t, call(t, one, r), "reused", 2)
	moved := r
	moved.Env = []string{"OTHER=1"}
	wantServed(t, call(t, one, moved), "fresh", 1)
	elsewhere := request("echo", `{}`)
	wantStatus(t, call(t, other, elsewhere), api.StatusOK) // which also describes
	elsewhere.Lock, elsewhere.Timeouts = r.Lock, within(time.Minute)
	wantStatus(t, call(t, other, elsewhere), api.StatusOK)
	wantServed(t, call(t, one, moved), "fresh", 1)
	wantServed(t, call(t, one, moved), "reused", 2)

	moved.Tool.Name, moved.Arguments = "stream", []byte(`{"n":1}`)
	used := startWaiting(t, one, moved)
	elsewhere.Timeouts = within(200 * time.Millisecond)
	wantStatus(t, call(t, other, elsewhere), api.StatusOverloaded)
	used.Abort(api.ReasonUser)
	wantStatus(t, used.Result(), api.StatusCancelled)
}

// Calls that go on and on at a kept process do not keep the data from others: those that
// come later wait behind these.
func TestCallsOfAKeptProcessLeaveTheLock(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := kept("stream", `{"n":1}`, supervisor.Keep{Shared: true})
	r.Lock, r.Timeouts = supervisor.Lock{File: filepath.Join(t.TempDir(), "lock")}, within(time.Minute)
	first := startWaiting(t, host, r)
	other := request("echo", `{}`)
	other.Lock, other.Timeouts = r.Lock, r.Timeouts
	waiting := host.Start(t.Context(), other)
	eventually(t, "another is the next", func() bool { return locked(r.Lock.File + ".turn") })
	r.Tool.Name = "count"
	later := host.Start(t.Context(), r)
	eventually(t, "a later one waits behind it", func() bool { return host.Host().Waiting == 2 })
	first.Abort(api.ReasonUser)
	wantStatus(t, first.Result(), api.StatusCancelled)
	wantStatus(t, waiting.Result(), api.StatusOK)
	wantServed(t, later.Result(), "fresh", 1)
}

// So many calls may wait for data, and no more.
func TestCallsThatWaitForALockAreBounded(t *testing.T) {
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Queue: 2}})
	lock := supervisor.Lock{File: filepath.Join(t.TempDir(), "lock")}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	holder := holding(t, host, ctx, lock)
	r := request("echo", `{}`)
	r.Lock, r.Timeouts = lock, within(time.Minute)
	var waiting []testCall
	for range 2 {
		waiting = append(waiting, host.Start(t.Context(), r))
	}
	eventually(t, "two wait", func() bool { return host.Host().Waiting == 2 })
	refused := call(t, host, r)
	wantStatus(t, refused, api.StatusOverloaded)
	if refused.Reason != "data" {
		t.Errorf("reason %q: %s", refused.Reason, refused.Message)
	}
	leave()
	wantStatus(t, holder.Result(), api.StatusCancelled)
	for _, c := range waiting {
		wantStatus(t, c.Result(), api.StatusOK)
	}
}

// Calls that share a lock do not keep out for ever one that does not.
func TestASharedLockIsLeftForOthers(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	file := filepath.Join(t.TempDir(), "lock")
	ctx, leave := context.WithCancel(t.Context())
	reader := holding(t, host, ctx, supervisor.Lock{File: file, Shared: true})
	r := request("echo", `{}`)
	r.Timeouts = within(time.Minute)
	r.Lock = supervisor.Lock{File: file}
	writer := host.Start(t.Context(), r)
	eventually(t, "the writer is the next", func() bool { return locked(file + ".turn") })
	r.Lock.Shared = true
	later := host.Start(t.Context(), r)
	eventually(t, "a later reader waits behind it", func() bool { return host.Host().Waiting == 2 })
	leave()
	reader.Result()
	wantStatus(t, writer.Result(), api.StatusOK)
	wantStatus(t, later.Result(), api.StatusOK)
}

func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
