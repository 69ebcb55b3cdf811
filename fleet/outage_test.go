package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// newOutage makes a worker and a caller that reach an engine by its address, with calls that
// wait for so long.
func newOutage(t *testing.T, most time.Duration) (*world, engine.Config) {
	w, public := newKeys(t, "w1")
	c := engine.Config{Listen: "127.0.0.1:0", Caller: w.key.Public(), Workers: public}
	var err error
	if w.engine, err = engine.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.engine.Close() }) // after what is connected to it
	c.Listen = w.engine.Address()
	config := fleet.Config{URL: "nats://" + c.Listen, Key: w.key, WorkersOnly: true, Logger: logger(t)}
	config.Supervisor.Admission.Wait = most
	if w.fleet, err = fleet.Open(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Close() })
	w.work("w1", nil)
	return w, c
}

// breakOff ends the engine, and waits until the caller knows.
func (w *world) breakOff() {
	w.engine.Close()
	wait.Until(w.t, "it is not connected", func() bool { return w.fleet.Servers().Trouble != "" })
}

// mend starts the engine again.
func (w *world) mend(c engine.Config) {
	w.t.Helper()
	var err error
	if w.engine, err = engine.Start(c); err != nil {
		w.t.Fatal(err)
	}
}

// While a caller is not connected to NATS servers it says so and why, and so do its calls.
func TestWithoutAConnection(t *testing.T) {
	t.Parallel()
	w, c := newOutage(t, 200*time.Millisecond)
	if e := w.fleet.Servers(); e != (api.Engine{URL: "nats://" + c.Listen}) {
		t.Errorf("%+v", e)
	}
	w.breakOff()
	const lost, waited = "the connection to the fleet's engine is lost", "no slot has become free within 200ms"
	if got := w.call(shell("echo x")); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, lost) || !strings.Contains(got.Message, waited) {
		t.Errorf("at once: %s %s", got.Status, got.Message)
	}
	wait.Until(t, "the worker is silent", func() bool { return w.fleet.Workers()[0].State == api.WorkerSuspect })
	if got := w.call(shell("echo x")); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, lost) {
		t.Errorf("later: %s %s", got.Status, got.Message)
	}
	wait.Until(t, "it has tried again", func() bool { return strings.Contains(w.fleet.Servers().Trouble, "connection refused") })
	if e := w.fleet.Servers(); e.Remedy == "" || e.SilentMs == 0 {
		t.Errorf("%+v", e)
	}
	stranger := c
	stranger.Caller = newKey(t, w.dir+"/stranger").Public()
	refuses, err := engine.Start(stranger)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "its key is refused", func() bool {
		e := w.fleet.Servers()
		return strings.Contains(e.Trouble, "uthorization") && strings.Contains(e.Remedy, "toolhost fleet nats-config")
	})
	refuses.Close()
	w.mend(c)
	wait.Until(t, "it is connected again", func() bool { return w.fleet.Servers().Trouble == "" })
}

// A call that must go to a worker waits for the connection to the engine, too.
func TestCallsWaitForTheConnection(t *testing.T) {
	t.Parallel()
	w, c := newOutage(t, time.Minute)
	w.breakOff()
	call := w.fleet.Start(t.Context(), shell("echo x"))
	w.mend(c)
	await(t, call.Done())
	if got := call.Result(); !got.OK() || got.Where.Worker != "w1" {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}
