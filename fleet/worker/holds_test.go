package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/internal/start"
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
