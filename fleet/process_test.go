package fleet_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

// demandVariable has the plugin end at once unless its KEY is this.
const demandVariable = "TOOLHOST_TEST_DEMAND"

// hangVariable has the plugin note in this file that it was asked, and never answer.
const hangVariable = "TOOLHOST_TEST_HANG"

// workerVariable has the test binary be a worker with these settings, in JSON.
const workerVariable = "TOOLHOST_TEST_WORKER"

type text struct {
	Text string `json:"text"`
}

func echo(_ context.Context, in text, out *plugin.Output) (text, error) { return in, out.Text(in.Text) }

func ask(ctx context.Context, in text, out *plugin.Output) (text, error) {
	answer, err := out.Ask(ctx, plugin.Question{Prompt: in.Text, Schema: json.RawMessage(`{"type":"string"}`)})
	if err != nil {
		return in, out.Textf("nobody: %v", err)
	}
	return in, out.Textf("answered %s", answer)
}

var counted atomic.Int64

func count(_ context.Context, in text, out *plugin.Output) (text, error) {
	return in, out.Textf("%d", counted.Add(1))
}

func hang(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString("asked\n")
	}
	if err != nil {
		panic(err)
	}
	wait.Forever()
}

// settings are a worker's. It is labelled pool=soak, lets calls write to Write, and has two
// slots unless it has others.
type settings struct {
	Name, URL, KeyFile, Caller, Dir, Write string
	Slots                                  int
	Lease                                  time.Duration // 2 s if zero
}

func TestMain(m *testing.M) {
	supervisor.RelayMain()
	fleettest.Main()
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		if want := os.Getenv(demandVariable); os.Getenv("KEY") != want {
			fmt.Fprintln(os.Stderr, "wrong key")
			os.Exit(1)
		}
		if file := os.Getenv(hangVariable); file != "" {
			hang(file)
		}
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "echo"}, echo), plugin.NewTool(plugin.Tool{Name: "ask"}, ask), plugin.NewTool(plugin.Tool{Name: "count"}, count))
		return
	}
	if os.Getenv(termVariable) != "" {
		sayWhenTold()
	}
	if raw := os.Getenv(callerVariable); raw != "" {
		beSoakCaller(raw)
		return
	}
	raw := os.Getenv(workerVariable)
	if raw == "" {
		os.Exit(m.Run())
	}
	var s settings
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		panic(err)
	}
	c := worker.Config{
		Name: s.Name, URL: s.URL, KeyFile: s.KeyFile, Callers: []string{s.Caller}, Dir: s.Dir, Lease: cmp.Or(s.Lease, 2*time.Second), Slots: cmp.Or(s.Slots, 2),
		Logger: hclog.New(&hclog.LoggerOptions{Name: s.Name, Output: os.Stderr}),
	}
	c.Labels, c.Supervisor.Admission.Running = map[string]string{"pool": "soak"}, s.Slots
	if s.Write != "" {
		c.Ceilings.Write = []string{s.Write}
	}
	cpus.Spare() // as toolhost worker does
	if _, err := worker.Open(context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	wait.Forever()
}

// process starts a worker in a process of its own.
func (w *world) process(name string) *exec.Cmd {
	w.t.Helper()
	return w.processOf(settings{Name: name})
}

// processOf is process with other slots or another lease.
func (w *world) processOf(s settings) *exec.Cmd {
	w.t.Helper()
	s.URL, s.KeyFile, s.Caller, s.Dir = "nats://"+w.engine.Address(), w.workers[s.Name], w.key.Public(), filepath.Join(w.dir, "run-"+s.Name)
	cmd := player(w.t, workerVariable, s)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.there(s.Name)
	return cmd
}

// begun starts a call that runs on until it is ended, and returns when its output is here.
// Its tool leaves its pid in a file.
func (w *world) begun() *fleet.Call {
	w.t.Helper()
	return w.begunOf(shell("echo it runs; exec sleep 1000"))
}

// deaf is a call that SIGTERM does not end.
func (w *world) deaf(grace time.Duration) *fleet.Call {
	w.t.Helper()
	r := shell("trap '' TERM; echo deaf; while :; do sleep 1; done")
	r.Grace = grace
	return w.begunOf(r)
}

// begunOf is a call that has written something.
func (w *world) begunOf(r supervisor.Request) *fleet.Call {
	w.t.Helper()
	events := make(chan api.Event, 100)
	r.Events = events
	c := w.fleet.Start(w.t.Context(), r)
	for {
		select {
		case e := <-events:
			if e.Kind == api.EventOutput {
				return c
			}
		case <-c.Done():
			w.t.Fatalf("it has not begun: %s", c.Result().Message)
		}
	}
}

// A worker that is killed takes its calls with it. They are lost, with what had come, and
// once its next life has looked, it is certain that nothing of them runs.
func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	one := w.process("w1")
	c := w.begun()
	_ = one.Process.Kill()
	_ = one.Wait()
	w.process("w1")
	await(t, c.Done())
	got := c.Result()
	if got.Status != api.StatusLost || got.Reason != api.ReasonWorkerDied || got.Where.StillRunning != "no" || got.Code != "UNKNOWN" {
		t.Errorf("%s %s %+v %s", got.Status, got.Reason, got.Where, got.Code)
	}
	if !got.Partial || got.Output.Stdout.Head != "it runs\n" || got.Retry.Retryable || got.Retry.SideEffects != "possible" {
		t.Errorf("partial %v %q, %+v", got.Partial, got.Output.Stdout.Head, got.Retry)
	}
	if !strings.HasPrefix(got.Message, `[LOST] Tool "sh" was lost: its worker w1 has died while it ran.`) || !strings.Contains(got.Message, "Nothing of it runs any more") {
		t.Errorf("%s", got.Message)
	}
	w.there("w1") // the caller has heard of its next life
	if got := w.call(shell("echo again")); !got.OK() {
		t.Errorf("the next call: %s", got.Message)
	}
}

// One that never comes back: the call is lost in bounded time, and has ended by then.
func TestAWorkerIsGone(t *testing.T) {
	stage.Of(t, "fleet")
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	one := w.process("w1")
	c := w.begun()
	_ = one.Process.Kill()
	await(t, c.Done())
	got := c.Result()
	if got.Status != api.StatusLost || got.Reason != api.ReasonUnreachable || got.Where.StillRunning != "no" {
		t.Errorf("%s %s %+v", got.Status, got.Reason, got.Where)
	}
	// And what has not begun goes elsewhere, or is retryable.
	if got := w.call(shell("echo x")); got.Status != api.StatusOverloaded || !got.Retry.Retryable || got.Retry.SideEffects != "none" {
		t.Errorf("%s %s %+v", got.Status, got.Message, got.Retry)
	}
	w.process("w2")
	if got := w.call(shell("echo x")); !got.OK() || got.Where.Worker != "w2" {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
}

// A worker that is stopped and goes on within the lease has lost nothing.
func TestAWorkerIsStoppedForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	one := w.processOf(settings{Name: "w1", Lease: 20 * time.Second})
	call := w.fleet.Start(t.Context(), shell("sleep 0.3; echo whole"))
	if err := one.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the worker is suspect", func() bool { return w.fleet.Workers()[0].State == "suspect" })
	if err := one.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, call.Done())
	if got := call.Result(); !got.OK() {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}

// A worker that is stopped for good cannot end its calls: their launchers do. What it does
// once it goes on starts nothing that was given up.
func TestAWorkerIsStopped(t *testing.T) {
	stage.Of(t, "fleet")
	t.Parallel()
	w := newWorld(t, "w1")
	one := w.process("w1")
	marker := filepath.Join(w.dir, "unique-"+filepath.Base(w.dir))
	var calls []*fleet.Call
	for range 2 {
		calls = append(calls, w.beginMarked(marker))
	}
	if err := one.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		await(t, c.Done())
		got := c.Result()
		if got.Status != api.StatusLost || got.Reason != api.ReasonUnreachable || got.Where.StillRunning != "no" || got.Output.Stdout.Head != "up\n" {
			t.Errorf("%s %s %+v %q", got.Status, got.Reason, got.Where, got.Output.Stdout.Head)
		}
	}
	if n := running(t, marker); n != 0 {
		t.Errorf("%d processes run of calls that are said to have ended", n)
	}
	if err := one.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.there("w1")
	if got := w.call(shell("echo again")); !got.OK() {
		t.Errorf("after it goes on: %s", got.Message)
	}
}

// beginMarked starts a call with a word in its command line, and returns when it runs.
func (w *world) beginMarked(marker string) *fleet.Call {
	w.t.Helper()
	events := make(chan api.Event, 100)
	r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"sh", "-c", "echo up; sleep 1000", marker}}, Events: events}
	c := w.fleet.Start(w.t.Context(), r)
	for {
		select {
		case e := <-events:
			if e.Kind == api.EventOutput {
				return c
			}
		case <-c.Done():
			w.t.Fatalf("it has not begun: %s", c.Result().Message)
		}
	}
}

// A worker that does not hear its caller any more ends that one's calls.
func TestACallerIsGone(t *testing.T) {
	stage.Of(t, "fleet")
	t.Parallel()
	w := newWorld(t, "w1")
	w.process("w1")
	marker := filepath.Join(w.dir, "unique-"+filepath.Base(w.dir))
	c := w.beginMarked(marker)
	if running(t, marker) == 0 {
		t.Fatal("the tool is not found among the processes")
	}
	w.engine.Close() // the link of both
	wait.Until(t, "nothing of the call runs", func() bool { return running(t, marker) == 0 })
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusLost || got.Reason != api.ReasonUnreachable {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}

// A worker that cannot put on record that it starts a call does not start it, and says so.
func TestAWorkersDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	one := w.process("w1")
	ledger, err := os.Stat(filepath.Join(w.dir, "run-w1", "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		t.Helper()
		if err := unix.Prlimit(one.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(ledger.Size()) + 10) // in the middle of a line
	got := w.call(shell("echo ran"))
	if got.Status != api.StatusOverloaded || !got.Retry.Retryable || got.Retry.SideEffects != "none" || !strings.Contains(got.Message, "ledger") {
		t.Errorf("%s %s %+v", got.Status, got.Message, got.Retry)
	}
	if n := strings.Count(got.Message, "cannot write the worker's ledger"); n != 1 {
		t.Errorf("it is said %d times: %s", n, got.Message)
	}
	trouble := func() string { return w.fleet.Workers()[0].Trouble }
	wait.Until(t, "its caller knows", func() bool { return strings.Contains(trouble(), "ledger") })
	limit(unix.RLIM_INFINITY)
	c := w.begun() // once there is room; and it is on record
	wait.Until(t, "that is over", func() bool { return trouble() == "" })
	_ = one.Process.Kill()
	_ = one.Wait()
	w.process("w1")
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusLost || got.Reason != api.ReasonWorkerDied {
		t.Errorf("its worker has died: %s %s", got.Status, got.Message)
	}
}

// processesWith counts those with a word in their command line.
func processesWith(word string) (n int, err error) {
	return processesThat(func(line string) bool { return strings.Contains(line, word+"\x00") })
}

// begunWith leaves out adapters: one may wait at a worker that was asked as well, whose
// command never begins.
func begunWith(word string) (n int, err error) {
	return processesThat(func(line string) bool {
		return strings.Contains(line, word+"\x00") && !strings.HasPrefix(line, "toolhost-adapter\x00")
	})
}

// processesThat counts those with such a command line, but for those of this program.
func processesThat(such func(line string) bool) (n int, err error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if raw, err := os.ReadFile(path); err == nil && such(string(raw)) && !strings.Contains(string(raw), os.Args[0]) {
			n++
		}
	}
	return n, err
}

// running is processesWith, in a test.
func running(t testing.TB, word string) int {
	t.Helper()
	n, err := processesWith(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
