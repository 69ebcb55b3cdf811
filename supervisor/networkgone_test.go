package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// keptReaching is a call of a kept process that has reached a destination.
func keptReaching(t *testing.T, host testHost, l *lab.Lab) *api.Result {
	t.Helper()
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")
	r.Keep = &supervisor.Keep{Shared: true}
	return call(t, host, r)
}

func wantReached(t *testing.T, r *api.Result, instance string) {
	t.Helper()
	wantStatus(t, r, api.StatusOK)
	if f := flowOf(t, r, "a.test", lab.EchoPort); r.Instance != instance || f.Connections != 1 || r.Network.Error != "" {
		t.Errorf("a %s process, want a %s one: %+v", r.Instance, instance, r.Network)
	}
}

// A kept process has no network without its relay: an idle one ends, and one that is in
// use is for no further calls.
func TestAKeptProcessWhoseRelayDies(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantReached(t, keptReaching(t, host, l), api.InstanceFresh)
	wantReached(t, keptReaching(t, host, l), api.InstanceReused)
	signalRelay(t, relayPID(t), syscall.SIGKILL)
	eventually(t, "the idle process has ended", func() bool { return host.Host().Kept == 0 })
	wantReached(t, keptReaching(t, host, l), api.InstanceFresh)

	events := make(chan api.Event, 100)
	r := reaching(t, l, with("a.test:2222"), "echo a.test:2222 x", "hang")
	r.Keep, r.Events = &supervisor.Keep{Shared: true}, events
	busy := host.Start(t.Context(), r)
	waitFor(t, events, api.EventOutput)
	signalRelay(t, relayPID(t), syscall.SIGKILL)
	eventually(t, "a call has another process", func() bool { return keptReaching(t, host, l).Instance == api.InstanceFresh })
	wantReached(t, keptReaching(t, host, l), api.InstanceReused)
	busy.Abort(api.ReasonUser)
	if got := busy.Result(); got.Instance != api.InstanceReused || got.Network.Error == "" {
		t.Errorf("the call whose relay has died: %s, %+v", got.Instance, got.Network)
	}
}

// replace has another file at a path, as a change of the machine's network does; the test
// is in a mount namespace of its own.
func replace(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(other, path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
}

// A process that has the machine's resolver of before serves no further calls, and the
// relay that has it ends.
func TestAKeptProcessHasTheResolverOfItsCalls(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantReached(t, keptReaching(t, host, l), api.InstanceFresh)
	wantReached(t, keptReaching(t, host, l), api.InstanceReused)
	before := relayPID(t)
	replace(t, "/etc/resolv.conf")
	wantReached(t, keptReaching(t, host, l), api.InstanceFresh)
	eventually(t, "the relay of before has ended", func() bool { return syscall.Kill(before, 0) != nil })
	wantReached(t, keptReaching(t, host, l), api.InstanceReused)

	replace(t, "/etc/hosts")
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK)
	eventually(t, "the idle process has ended", func() bool { return host.Host().Kept == 0 })

	r := kept("count", `{}`, supervisor.Keep{})
	r.Sandbox = &supervisor.Policy{Network: "host", Allow: []string{sandbox.FeatureLandlockScope}}
	wantServed(t, call(t, host, r), api.InstanceFresh, 1)
	wantServed(t, call(t, host, r), api.InstanceReused, 2)
	replace(t, "/etc/resolv.conf")
	wantServed(t, call(t, host, r), api.InstanceFresh, 1)
}

// A call whose relay has ended waits for nobody's answer about a connection.
func TestNoClockStandsStillForARelayThatDied(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	r := reaching(t, l, lab0, "get https://b.test/1", "hang")
	r.Sandbox.AskNetwork = true
	r.Timeouts, r.Grace = within(2*time.Second), -1
	r.Ask = func(ctx context.Context, _ supervisor.Question) supervisor.Answer {
		signalRelay(t, relayPID(t), syscall.SIGKILL)
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("the call waits for an answer that is for nobody")
		}
		return supervisor.Answer{Denied: api.OutcomeCancelled}
	}
	wantStatus(t, call(t, newHost(t, supervisor.Config{}), r), api.StatusTimeout)
}
