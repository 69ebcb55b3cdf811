package worker

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/unkillable"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

func TestMain(m *testing.M) {
	supervisor.RelayMain()
	os.Exit(m.Run())
}

// What is remembered of calls that are over, and of those that were refused, holds neither
// their requests nor their results.
func TestWhatIsOverHoldsNothing(t *testing.T) {
	t.Parallel()
	w, f := newPair(t)
	f.Call(wait.Context(t), supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}})
	wait.Until(t, "it holds nothing", func() bool { return w.holdsNothingOf(start.Finished) })
	a := attemptOf(99, start.Unseen)
	a.asked = []byte("a request")
	w.mu.Lock()
	w.expire(a, nil)
	w.mu.Unlock()
	if a.state != start.Refused || a.asked != nil {
		t.Errorf("a refused one holds %q", a.asked)
	}
}

// As many calls as there are slots run at once: the supervisor has no fewer.
func TestTheSupervisorHasTheSlots(t *testing.T) {
	t.Parallel()
	w, _ := newPair(t)
	if n := w.config.Supervisor.Admission.Slots(); n != 1 {
		t.Errorf("%d calls of one slot would run", n)
	}
}

// The result that a refusal came with is there for as long as its caller may ask for it again.
func TestARefusalLosesItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, a := &Worker{config: Config{Lease: DefaultLease}}, attemptOf(1, start.Unseen)
		has := func() bool { w.mu.Lock(); defer w.mu.Unlock(); return a.why.Result != nil }
		w.mu.Lock()
		w.expire(a, &fleetv1.Never{Result: []byte("a result")})
		w.mu.Unlock()
		if !has() {
			t.Error("it has none at first")
		}
		time.Sleep(DefaultLease)
		synctest.Wait()
		if has() {
			t.Error("it is kept")
		}
	})
}

// holdsNothingOf says whether there are attempts in a state, and these hold nothing.
func (w *Worker) holdsNothingOf(state start.Attempt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.callers {
		for _, a := range c.attempts {
			if a.state != state {
				continue
			}
			if a.runs != nil || a.asked != nil || a.call != nil || a.request.Command != nil {
				return false
			}
			n++
		}
	}
	return n > 0
}

// A call that runs has no result that waits yet: of these there may be fewer than a large worker
// has slots.
func TestWhatRunsHasNoResultThatWaits(t *testing.T) {
	t.Parallel()
	w, f := newPair(t)
	c := f.Start(wait.Context(t), supervisor.Request{Command: &supervisor.Command{Argv: []string{"sleep", "1000"}}})
	var unread int
	wait.Until(t, "it runs", func() (running bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, other := range w.callers {
			for _, a := range other.attempts {
				running = a.state == start.Started && a.out.Load() != nil
			}
		}
		unread = w.unread
		return running
	})
	if unread != 0 {
		t.Errorf("%d results wait", unread)
	}
	c.Abort(api.ReasonUser)
	<-c.Done()
	wait.Until(t, "its result is taken", func() bool { busy, unread := w.Load(); return busy == 0 && unread == 0 })
}

// The slot of an attempt whose go has not come is held until the process that has waited for
// it is gone: they are no more than the slots, also where the kernel holds them.
func TestAGivenUpProcessKeepsItsSlot(t *testing.T) {
	w, _ := newPair(t)
	mark := "WAITS=" + rand.Text()
	call, err := w.host.Prepare(t.Context(), supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}, Env: []string{mark}})
	if err != nil {
		t.Fatal(err)
	}
	call.WarmUp(nil)
	var waits []int
	wait.Until(t, "its process waits", func() bool { waits = processes.WithEnvironment(mark); return len(waits) == 1 })
	thaw := unkillable.Freeze(t, waits[0])
	a := attemptOf(99, start.Prepared)
	a.call = call
	free := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.free }
	w.mu.Lock()
	w.hold(a)
	w.mu.Unlock()
	w.tooLate(a)
	w.mu.Lock()
	w.answer(a, start.Query) // also when its caller asks about it
	w.mu.Unlock()
	if free() != 0 {
		t.Error("its slot is free before its process is gone")
	}
	if busy, _ := w.Load(); busy != 0 {
		t.Error("a drain would wait for it")
	}
	thaw()
	wait.Until(t, "its slot is free", func() bool { return free() == 1 })
	if left := processes.WithEnvironment(mark); len(left) > 0 {
		t.Errorf("its slot is free beside %v", left)
	}
}

// newPair is a worker and its caller.
func newPair(t *testing.T) (*Worker, *fleet.Fleet) {
	t.Helper()
	dir := t.TempDir()
	keys, public := map[string]*fleet.Key{}, map[string]string{}
	for _, name := range []string{"caller", "w1"} {
		key, err := fleet.NewKey()
		if err == nil {
			err = key.WriteFile(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
		keys[name], public[name] = key, key.Public()
	}
	workers := map[string]string{"w1": public["w1"]}
	e, err := engine.Start(engine.Config{Listen: "127.0.0.1:0", Caller: public["caller"], Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	f, err := fleet.Open(t.Context(), fleet.Config{Engine: e, Key: keys["caller"], Workers: workers, WorkersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	w, err := Open(t.Context(), Config{
		Name: "w1", URL: "nats://" + e.Address(), KeyFile: filepath.Join(dir, "w1"), Callers: []string{public["caller"]}, Dir: filepath.Join(dir, "run"), Slots: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	wait.Until(t, "the worker takes calls", func() bool {
		known := f.Workers()
		return len(known) == 1 && known[0].State == "taking"
	})
	return w, f
}
