package fleet_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// shared is a worker that two callers have calls made by.
type shared struct {
	t       *testing.T
	keys    [2]string
	callers [2]*fleet.Fleet
	worker  *worker.Worker
	config  worker.Config
}

// share starts it; adjust is given the callers' keys.
func share(t *testing.T, adjust func(c *worker.Config, keys [2]string)) *shared {
	t.Helper()
	s, dir := &shared{t: t}, t.TempDir()
	workerKey := newKey(t, filepath.Join(dir, "w1")).Public()
	parties := []fleettest.Party{{Key: workerKey, Worker: "w1"}}
	var keys [2]*fleet.Key
	for i, name := range []string{"a", "b"} {
		keys[i] = newKey(t, filepath.Join(dir, name))
		s.keys[i] = keys[i].Public()
		parties = append(parties, fleettest.Party{Key: s.keys[i]})
	}
	servers, err := fleettest.Start(fleettest.Config{Number: 1, Parties: parties})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	s.config = worker.Config{
		Name: "w1", URL: servers.List[0].URL, KeyFile: filepath.Join(dir, "w1"), Callers: s.keys[:], Dir: filepath.Join(dir, "run"),
		Lease: 5 * time.Second, Slots: 4, Logger: logger(t),
	}
	adjust(&s.config, s.keys)
	s.work()
	for i := range keys {
		s.callers[i], err = fleet.Open(t.Context(), fleet.Config{URL: servers.List[0].URL, Key: keys[i], WorkersOnly: true, Logger: logger(t).Named(s.keys[i][:4])})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.callers[i].Close() })
		s.awaitState(i, api.WorkerTaking)
	}
	return s
}

func (s *shared) work() {
	s.t.Helper()
	var err error
	if s.worker, err = worker.Open(s.t.Context(), s.config); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.worker.Close() })
}

// awaitState waits until a caller sees the worker so; "" is not at all.
func (s *shared) awaitState(caller int, want string) {
	s.t.Helper()
	wait.Until(s.t, "the worker is "+want, func() bool {
		list := s.callers[caller].Workers()
		return len(list) == 0 && want == "" || len(list) == 1 && list[0].State == want
	})
}

// run makes a call of a caller, which must come to this.
func (s *shared) run(caller int, want api.Status) {
	s.t.Helper()
	if got := s.callers[caller].Call(wait.Context(s.t), shell("echo x")); got.Status != want {
		s.t.Errorf("a call of caller %d: %s %s", caller, got.Status, got.Message)
	}
}

func (s *shared) drainAsked() bool {
	select {
	case <-s.worker.DrainAsked():
		return true
	default:
		return false
	}
}

// A caller that drains a worker takes it from nobody else: it has no more calls of its own
// there, and the worker goes on until the last caller has asked.
func TestADrainConcernsItsCaller(t *testing.T) {
	t.Parallel()
	s := share(t, func(*worker.Config, [2]string) {})
	running := s.callers[0].Start(t.Context(), shell("sleep 1000"))
	wait.Until(t, "it runs", func() bool { busy, _ := s.worker.Load(); return busy == 1 })
	if !s.callers[0].Drain("w1") {
		t.Fatal("the worker is not known")
	}
	s.awaitState(0, api.WorkerDraining)
	s.run(0, api.StatusOverloaded)
	s.run(1, api.StatusOK)
	running.Abort(api.ReasonUser)
	await(t, running.Done())
	s.awaitState(0, api.WorkerDrained)
	s.run(1, api.StatusOK)
	if s.drainAsked() {
		t.Fatal("one of two callers has drained the worker")
	}
	s.awaitState(1, api.WorkerTaking)
	s.callers[1].Drain("w1")
	await(t, s.worker.DrainAsked())
	if err := s.worker.Drain(wait.Context(t)); err != nil {
		t.Error(err)
	}
	if err := s.worker.Close(); err != nil {
		t.Error(err)
	}
	s.awaitState(0, "")
	s.awaitState(1, "")
	s.work() // its next life takes calls of both
	s.awaitState(0, api.WorkerTaking)
	s.run(0, api.StatusOK)
}

// A worker has drained for a caller once it has none of its calls, though one that it had kept
// a place for is not over: that waits, or runs, elsewhere.
func TestADrainWaitsForNoCallThatWentOn(t *testing.T) {
	t.Parallel()
	s := share(t, func(c *worker.Config, _ [2]string) { c.Slots = 1 })
	running := s.callers[0].Start(t.Context(), shell("sleep 1000"))
	wait.Until(t, "it runs", func() bool { busy, _ := s.worker.Load(); return busy == 1 })
	waiting := s.callers[0].Start(t.Context(), shell("sleep 1000"))
	wait.Until(t, "it waits", func() bool { return s.callers[0].Waiting() == 1 })
	s.callers[0].Drain("w1")
	s.awaitState(0, api.WorkerDraining)
	running.Abort(api.ReasonUser)
	await(t, running.Done())
	s.awaitState(0, api.WorkerDrained)
	select {
	case <-waiting.Done():
		t.Error("the worker was draining until the call that waits was over:", waiting.Result().Message)
	default:
	}
	waiting.Abort(api.ReasonUser)
	await(t, waiting.Done())
}

// What a caller has asked for ends with its life: the next one has not asked.
func TestADrainIsOfItsLife(t *testing.T) {
	t.Parallel()
	s := share(t, func(*worker.Config, [2]string) {})
	s.callers[0].Drain("w1")
	s.awaitState(0, api.WorkerDrained)
	if err := s.callers[0].Close(); err != nil {
		t.Error(err)
	}
	key, err := fleet.ReadKey(filepath.Join(filepath.Dir(s.config.KeyFile), "a"))
	if err != nil {
		t.Fatal(err)
	}
	if s.callers[0], err = fleet.Open(t.Context(), fleet.Config{URL: s.config.URL, Key: key, WorkersOnly: true}); err != nil {
		t.Fatal(err)
	}
	s.awaitState(0, api.WorkerTaking)
	s.run(0, api.StatusOK)
	s.callers[1].Drain("w1")
	s.awaitState(1, api.WorkerDrained)
	if s.drainAsked() {
		t.Error("what an earlier life has asked for counts")
	}
}

// A caller that the owner lets drain the worker ends it for all.
func TestDrainBy(t *testing.T) {
	t.Parallel()
	s := share(t, func(c *worker.Config, keys [2]string) { c.DrainBy = keys[1:] })
	s.callers[0].Drain("w1")
	s.awaitState(0, api.WorkerDrained)
	if s.drainAsked() {
		t.Fatal("a caller has drained the worker that may not")
	}
	s.callers[1].Drain("w1")
	await(t, s.worker.DrainAsked())
	s.awaitState(1, api.WorkerDraining)
	s.config.Callers, s.config.DrainBy = s.keys[:1], s.keys[1:]
	if err := s.config.Check(); err == nil {
		t.Error("one that is not a caller may drain the worker")
	}
}

// A worker that ends gives a long result its time also when ending the call has taken longer.
func TestTheResultOfACallThatEndsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	opened := w.work("w1", nil)
	const written = 3_000_000
	r := shell(fmt.Sprintf("trap '' TERM; head -c %d /dev/zero | tr '\\0' x; exec sleep 100", written))
	r.Grace, r.Limits.OutputBytes = 3*time.Second, 2*written
	c := w.begunOf(r)
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusCancelled || len(got.Output.Stdout.Head)+len(got.Output.Stdout.Tail) != written {
		t.Errorf("%s: %s, %d bytes", got.Status, got.Message, got.Output.Stdout.KeptBytes)
	}
}
