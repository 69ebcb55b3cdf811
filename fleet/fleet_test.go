package fleet_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// world is a caller and an engine in this process, and workers beside them.
type world struct {
	t       testing.TB
	dir     string
	key     *fleet.Key
	engine  *engine.Engine
	fleet   *fleet.Fleet
	workers map[string]string // key files
}

func newKey(t testing.TB, path string) *fleet.Key {
	t.Helper()
	key, err := fleet.NewKey()
	if err == nil {
		err = key.WriteFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newKeys makes keys for a caller and the named workers.
func newKeys(t testing.TB, names ...string) (w *world, public map[string]string) {
	t.Helper()
	w = &world{t: t, dir: t.TempDir(), workers: map[string]string{}}
	w.key = newKey(t, filepath.Join(w.dir, "caller"))
	public = map[string]string{}
	for _, name := range names {
		w.workers[name] = filepath.Join(w.dir, name)
		public[name] = newKey(t, w.workers[name]).Public()
	}
	return w, public
}

// newWorld lets the named workers in.
func newWorld(t testing.TB, names ...string) *world {
	t.Helper()
	return newWorldWith(t, func(*fleet.Config) {}, names...)
}

// newWorldWith is newWorld with a caller of one's own.
func newWorldWith(t testing.TB, adjust func(*fleet.Config), names ...string) *world {
	t.Helper()
	w, public := newKeys(t, names...)
	var err error
	if w.engine, err = engine.Start(engine.Config{Listen: "127.0.0.1:0", Caller: w.key.Public(), Workers: public}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.engine.Close)
	c := fleet.Config{Engine: w.engine, Key: w.key, Workers: public, WorkersOnly: true, Logger: logger(t)}
	adjust(&c)
	w.fleet, err = fleet.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func logger(t testing.TB) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: t.Name(), Level: hclog.Debug, Output: t.Output()})
}

// work starts a worker in this process.
func (w *world) work(name string, adjust func(*worker.Config)) *worker.Worker {
	w.t.Helper()
	c := worker.Config{
		Name: name, URL: "nats://" + w.engine.Address(), KeyFile: w.workers[name], Callers: []string{w.key.Public()},
		Dir: filepath.Join(w.dir, "run-"+name), Lease: 5 * time.Second, Slots: 2, Logger: logger(w.t),
	}
	if adjust != nil {
		adjust(&c)
	}
	opened, err := worker.Open(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.there(name)
	return opened
}

// there waits for a worker to take calls.
func (w *world) there(name string) {
	w.t.Helper()
	w.thereFor(w.fleet, name)
}

func (w *world) thereFor(f *fleet.Fleet, name string) {
	w.t.Helper()
	wait.Until(w.t, "the worker "+name+" takes calls", func() bool {
		for _, known := range f.Workers() {
			if known.Name == name && known.State == "taking" {
				return true
			}
		}
		return false
	})
}

func shell(script string) supervisor.Request {
	return supervisor.Request{Command: &supervisor.Command{Argv: []string{"sh", "-c", script}}}
}

func (w *world) call(r supervisor.Request) *api.Result {
	w.t.Helper()
	c := w.fleet.Start(w.t.Context(), r)
	await(w.t, c.Done())
	return c.Result()
}

func await(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-wait.Context(t).Done():
		t.Fatal("it never ends")
	}
}

func TestACallOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	events := make(chan api.Event, 100)
	r := shell("echo out; echo err >&2; exit 3")
	r.ID, r.Events = "one", events
	got := w.call(r)
	if got.Status != api.StatusToolError || got.CallID != "one" || got.Output.Stdout.Head != "out\n" || got.Output.Stderr.Head != "err\n" || *got.Exit.Code != 3 {
		t.Errorf("%+v", got)
	}
	if got.Where == nil || got.Where.Worker != "w1" || got.Where.Attempt != 1 || len(got.Sandbox.Enforced) == 0 {
		t.Errorf("where %+v, enforced %q", got.Where, got.Sandbox.Enforced)
	}
	kinds := ""
	for len(events) > 0 {
		kinds += string((<-events).Kind) + " "
	}
	if !strings.HasPrefix(kinds, "tool_queued tool_started ") || strings.Count(kinds, "tool_failed") != 1 || !strings.Contains(kinds, "tool_output") {
		t.Errorf("events %s", kinds)
	}
}

// The deadline is the worker's, and what came before it is kept.
func TestADeadlineOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r := shell("echo before; exec sleep 1000")
	r.Timeout, r.Grace = time.Second, 100*time.Millisecond
	got := w.call(r)
	if got.Status != api.StatusTimeout || got.Output.Stdout.Head != "before\n" || got.Kill.Survivors != 0 || *got.Timing.TimeoutMs != 1000 {
		t.Errorf("%s: %+v %+v", got.Message, got.Kill, got.Timing)
	}
}

func TestAnAbortOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	c := w.deaf(20 * time.Second)
	c.Abort(api.ReasonUser)
	c.Abort(api.ReasonUser) // at once
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusCancelled || got.Reason != api.ReasonUser || got.Kill.Stage != "kill" {
		t.Errorf("%s %s: %+v", got.Status, got.Reason, got.Kill)
	}
}

// A large result comes whole, in many windows, also where the call may keep more than other
// results may have.
func TestALargeResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r, size := shell("head -c 68000000 /dev/zero | tr '\\0' x"), 68_000_000
	r.Limits.OutputBytes, r.EventOutputBytes = int64(size), -1
	got := w.call(r)
	if got.Status != api.StatusOK || got.Output.Stdout.Head != strings.Repeat("x", size) {
		t.Errorf("%s, %d bytes", got.Status, len(got.Output.Stdout.Head))
	}
}

// What no worker can do yet is refused by name, and so is what this one's owner does not
// let it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", func(c *worker.Config) { c.Ceilings = worker.Ceilings{MemoryBytes: 100 << 20, Timeout: time.Minute} })
	small := supervisor.Limits{MemoryBytes: 50 << 20}
	for want, change := range map[string]func(r *supervisor.Request){
		"files of this machine (read)":                                                        func(r *supervisor.Request) { r.Sandbox = &supervisor.Policy{Read: []string{"/srv"}} },
		"memory of 512MiB is over the worker's ceiling":                                       func(r *supervisor.Request) { r.Limits = supervisor.Limits{} },
		"timeout of 1h0m0s is over the worker's ceiling":                                      func(r *supervisor.Request) { r.Timeout = time.Hour },
		"none that takes calls has gpu=a100: start one with toolhost worker --label gpu=a100": func(r *supervisor.Request) { r.Where = map[string]string{"gpu": "a100"} },
		"nosuchprogram": func(r *supervisor.Request) { r.Command.Argv = []string{"nosuchprogram"} },
	} {
		r := shell("echo ran")
		r.Limits = small
		change(&r)
		got := w.call(r)
		if got.OK() || got.Retry.SideEffects != "none" || got.Status == api.StatusOverloaded != strings.HasPrefix(want, "none that takes calls") || !strings.Contains(got.Message, want) {
			t.Errorf("%q: %s %s", want, got.Status, got.Message)
		}
	}
	r := shell("echo ran")
	r.Limits = small
	if got := w.call(r); !got.OK() {
		t.Errorf("what is within the ceilings: %s", got.Message)
	}
}

// A command that one worker lacks is looked for at the next one.
func TestACommandThatWorkersLack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	w.work("w1", nil)
	w.work("w2", nil)
	r := shell("")
	r.Command.Argv = []string{"nosuchprogram"}
	got := w.call(r)
	if got.Reason != api.ReasonNotFound || got.ToolError.Kind != "command_not_found" || got.Where.Attempt != 2 || len(got.Warnings) != 1 {
		t.Errorf("%s %s: %+v %+v %q", got.Status, got.Reason, got.ToolError, got.Where, got.Warnings)
	}
}

// A plugin is run where it is the one that the caller has, and nowhere else.
func TestAPluginOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "echo"}, Arguments: json.RawMessage(`{"text":"hi"}`)}
	got := w.call(r)
	if !got.OK() || got.Text() != "hi" || got.Where == nil || len(got.SHA256) != 64 {
		t.Errorf("%s %q %+v", got.Message, got.Text(), got.Where)
	}
	r.SHA256 = strings.Repeat("0", 64)
	if got := w.call(r); got.OK() || got.Retry.SideEffects != "none" {
		t.Errorf("another file: %s", got.Message)
	}
}

// Without settings a fleet is a supervisor.
func TestWithoutSettings(t *testing.T) {
	t.Parallel()
	f, err := fleet.Open(t.Context(), fleet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Call(t.Context(), shell("echo here"))
	if !got.OK() || got.Where != nil || got.Text() != "here\n" {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
	r := shell("echo there")
	r.Where = map[string]string{"worker": "w1", "gpu": "a100"}
	if got := f.Call(t.Context(), r); got.Status != api.StatusPolicyViolation || !strings.Contains(got.Message, "with gpu=a100 and worker=w1, and there is no fleet here: have a daemon") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A result survives its way as it is.
func TestAResultIsTheWorkersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	got := w.call(shell("echo x > file; echo done"))
	raw, err := json.Marshal(got)
	if err != nil || !got.OK() || len(got.Files) != 1 || got.Usage.MemoryPeakBytes == 0 {
		t.Errorf("%s, %v", raw, err)
	}
}

// A worker decides about a call once, when it is offered.
func TestACallIsPlannedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	var planned atomic.Int64
	w.work("w1", func(c *worker.Config) {
		c.Supervisor.Own = func() sandbox.Own {
			planned.Add(1)
			return sandbox.Own{}
		}
	})
	before := planned.Load()
	if got := w.call(shell("echo ran")); !got.OK() {
		t.Fatal(got.Message)
	}
	if n := planned.Load() - before; n != 1 {
		t.Errorf("it was planned %d times", n)
	}
}

// What is wrong with the arguments is the call's result, as on one machine.
func TestWrongArgumentsOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "echo"}, Arguments: json.RawMessage(`{"text":7}`)}
	if got := w.call(r); got.Status != api.StatusInvalidArgs || got.Where == nil {
		t.Errorf("%s %s %+v", got.Status, got.Message, got.Where)
	}
}
