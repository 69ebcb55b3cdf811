package fleet_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// While a caller is not connected to NATS servers it says so and why, and so do its calls.
func TestWithoutAConnection(t *testing.T) {
	t.Parallel()
	w, public := newKeys(t, "w1")
	c := engine.Config{Listen: "127.0.0.1:0", Caller: w.key.Public(), Workers: public}
	var err error
	if w.engine, err = engine.Start(c); err != nil {
		t.Fatal(err)
	}
	c.Listen = w.engine.Address()
	w.fleet, err = fleet.Open(t.Context(), fleet.Config{URL: "nats://" + c.Listen, Key: w.key, WorkersOnly: true, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Close() })
	w.work("w1", nil)
	if e := w.fleet.Servers(); e != (api.Engine{URL: "nats://" + c.Listen}) {
		t.Errorf("%+v", e)
	}
	w.engine.Close()
	wait.Until(t, "it is not connected", func() bool { return w.fleet.Servers().Trouble != "" })
	const lost = "the connection to the fleet's engine is lost"
	if got := w.call(shell("echo x")); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, lost) {
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
	again, err := engine.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	wait.Until(t, "it is connected again", func() bool { return w.fleet.Servers().Trouble == "" })
}
