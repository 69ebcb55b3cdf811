package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// A secret goes sealed to the worker that starts the call, and is masked as on one
// machine; a worker whose key is not known gets none.
func TestSecretsOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r := shell("test $KEY = hidden-value && test $(cat $CERT) = other-value && echo it is $KEY")
	r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "hidden-value"}, {Variable: "CERT", File: true, Value: "other-value"}}
	if got := w.call(r); !got.OK() || got.Text() != "it is [REDACTED]\n" {
		t.Errorf("%s %q", got.Message, got.Text())
	}
	r = shell(`test "$(od -An -tx1 $CERT | tr -d ' \n')" = fffe0001`)
	r.Secrets = []supervisor.Secret{{Variable: "CERT", File: true, Value: "\xff\xfe\x00\x01"}}
	if got := w.call(r); !got.OK() {
		t.Errorf("one of any bytes: %s", got.Message)
	}
	if err := w.fleet.Close(); err != nil { // a worker hears one process of a caller
		t.Fatal(err)
	}
	stranger, err := fleet.Open(t.Context(), fleet.Config{URL: "nats://" + w.engine.Address(), Key: w.key, WorkersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	w.thereFor(stranger, "w1")
	got := stranger.Call(t.Context(), r)
	if got.OK() || !strings.Contains(got.Message, "cannot be given secrets: fleet.workers has no key for it") || got.Retry.SideEffects != "none" {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}

// An adapter is not asked about its tool before the secrets are here: a server may look at them
// when it starts. What is over the ceiling of the timeout is cut then.
func TestSecretsOfAnAdapterOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.work("w1", func(c *worker.Config) { c.Adapter, c.Ceilings.Timeout = self, time.Minute })
	r := supervisor.Request{
		Tool: supervisor.Tool{Path: self, Name: "echo", Adapter: true}, Arguments: json.RawMessage(`{"text":"it is here"}`), Meta: json.RawMessage(`{"dev.toolhost/timeoutMs":120000}`),
		Env: []string{demandVariable + "=hidden-value"}, Secrets: []supervisor.Secret{{Variable: "KEY", Value: "hidden-value"}},
	}
	overhears, _ := w.dial(filepath.Join(w.dir, "caller"))
	var said atomic.Int64
	w.subscribe(overhears, link.FrameSubject(w.key.Public(), "w1", "*"), func(m *nats.Msg) {
		frames, _ := link.Frames(m.Data)
		for _, f := range frames {
			if begun := f.GetStarted(); begun != nil {
				said.Store(begun.TimeoutMs)
			}
		}
	})
	if err := overhears.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := w.call(r); !got.OK() || got.Text() != "it is here" || *got.Timing.TimeoutMs != time.Minute.Milliseconds() {
		t.Errorf("%s %s %q", got.Status, got.Message, got.Text())
	}
	wait.Until(t, "the worker says how long the call may take", func() bool { return said.Load() == time.Minute.Milliseconds() })
	lacking := r
	lacking.Tool.Args = []string{"--", "/nowhere/server"}
	if got := w.call(lacking); got.Status != api.StatusStartFailed || !strings.Contains(got.Message, "no worker takes it: w1: no tool at /nowhere/server") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	r.Timeout = 2 * time.Minute
	if got := w.call(r); got.Status != api.StatusPolicyViolation || !strings.Contains(got.Message, "--max-timeout") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}

// An abort does not wait for a server that is asked what it is.
func TestAnAbortWhileAServerWithSecretsIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	w.work("w1", func(c *worker.Config) { c.Adapter, c.Ceilings.Write = self, []string{dir} })
	c := w.fleet.Start(t.Context(), supervisor.Request{
		Tool: supervisor.Tool{Path: self, Name: "echo", Adapter: true, DescribeTimeout: time.Hour}, Arguments: json.RawMessage(`{"text":"it is here"}`), Timeout: time.Hour,
		Env: []string{demandVariable + "=hidden-value", hangVariable + "=" + asked}, Secrets: []supervisor.Secret{{Variable: "KEY", Value: "hidden-value"}},
		Sandbox: &supervisor.Policy{Write: []string{dir}}, Placement: supervisor.Placement{Where: map[string]string{"worker": "w1"}},
	})
	wait.Until(t, "the server is asked", func() bool {
		select {
		case <-c.Done():
			return true
		default:
		}
		_, err := os.Stat(asked)
		return err == nil
	})
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	times, err := os.ReadFile(asked)
	if got := c.Result(); got.Status != api.StatusCancelled || got.Reason != api.ReasonUser || err != nil || string(times) != "asked\n" {
		t.Errorf("%s %s %s; it was asked: %q, %v", got.Status, got.Reason, got.Message, times, err)
	}
}

// What a call may reach is what its policy grants, within what the worker's owner allows.
func TestNetworkOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	w.work("w1", nil)
	r := shell("echo ran")
	r.Sandbox = &supervisor.Policy{Grants: []network.Grant{{Host: "example.com", Ports: []uint16{443}}}}
	if got := w.call(r); got.Status != api.StatusStartFailed || !strings.Contains(got.Message, "--network of worker w1") {
		t.Errorf("without a word of the owner: %s %s", got.Status, got.Message)
	}
	w.work("w2", func(c *worker.Config) {
		c.Ceilings.Network = supervisor.Ceiling{Network: sandbox.NetworkGrants, Grants: []network.Grant{{Host: "example.com", Ports: []uint16{443}}}}
	})
	r.Where = map[string]string{"worker": "w2"}
	if got := w.call(r); !got.OK() || got.Sandbox.Network != "grants" || len(got.Sandbox.Grants) != 1 {
		t.Errorf("what the owner allows: %s %+v", got.Message, got.Sandbox)
	}
	for name, policy := range map[string]*supervisor.Policy{
		"another name": {Grants: []network.Grant{{Host: "example.org"}}}, "the host's network": {Network: sandbox.NetworkHost}, "asking": {AskNetwork: true},
	} {
		r.Sandbox = policy
		if got := w.call(r); got.OK() || got.Retry.SideEffects != "none" {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
}

// A call that this machine may make has no network beyond its ceiling, also while it is busy and
// a worker is free that allows more.
func TestTheCeilingOfThisMachineOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) {
		c.WorkersOnly, c.Supervisor.Admission.Running = false, 1
		c.Supervisor.Ceiling.Network = sandbox.NetworkNone
	}, "w1")
	w.work("w1", func(c *worker.Config) { c.Ceilings.Network.Network = sandbox.NetworkHost })
	first := w.fleet.Start(t.Context(), shell("sleep 1000"))
	r := shell("echo ran")
	r.Sandbox = &supervisor.Policy{Network: sandbox.NetworkHost}
	if got := w.call(r); got.OK() || got.Reason != api.ReasonPolicy || !strings.Contains(got.Message, "limits.network") {
		t.Errorf("%s %s %+v", got.Status, got.Message, got.Where)
	}
	r.Where = map[string]string{"worker": "w1"} // whose owner's word holds
	if got := w.call(r); !got.OK() {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	first.Abort(api.ReasonUser)
	await(t, first.Gone())
}

// A call that becomes too long on its way to a worker is made on this machine, where it may be,
// and else refused by name.
func TestACallTooLongForAWorker(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.WorkersOnly, c.Supervisor.Admission.Running = false, 1 }, "w1")
	w.work("w1", nil)
	first := w.fleet.Start(t.Context(), shell("sleep 1000"))
	r := shell("echo ran")
	r.Env = []string{"A=" + strings.Repeat("\x01", 50_000), "B=" + strings.Repeat("\x01", 50_000)}
	c := w.fleet.Start(t.Context(), r)
	r.Where = map[string]string{"worker": "w1"}
	if got := w.call(r); got.Status != api.StatusPolicyViolation || !strings.Contains(got.Message, "no worker can do this: a call of more than 512 KiB") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	first.Abort(api.ReasonUser)
	await(t, c.Done())
	if got := c.Result(); !got.OK() || got.Where != nil {
		t.Errorf("%s %s %+v", got.Status, got.Message, got.Where)
	}
}

// A call that names its worker is granted files of that one's machine, as far as its owner
// allows.
func TestFilesOfAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("from the worker"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.work("w1", func(c *worker.Config) { c.Ceilings.Write = []string{dir} })
	r := shell("cat in; echo made > out")
	r.Sandbox, r.Dir = &supervisor.Policy{Write: []string{dir}}, dir
	if got := w.call(r); got.Status != api.StatusPolicyViolation || !strings.Contains(got.Message, "files of this machine (write); a working directory") {
		t.Errorf("without where: %s %s", got.Status, got.Message)
	}
	r.Where = map[string]string{"worker": "w1"}
	if got := w.call(r); !got.OK() || got.Text() != "from the worker" {
		t.Errorf("%s %q", got.Message, got.Text())
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(raw) != "made\n" {
		t.Errorf("%q, %v", raw, err)
	}
	r.Sandbox, r.Dir = &supervisor.Policy{Read: []string{"/etc"}}, ""
	if got := w.call(r); got.Status != api.StatusPolicyViolation || !strings.Contains(got.Message, "read none of /etc") {
		t.Errorf("beyond: %s %s", got.Status, got.Message)
	}
}

// A tool's question is put to who made the call, and its answer comes back.
func TestQuestionsOfAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	r := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "ask"}, Arguments: json.RawMessage(`{"text":"your name"}`)}
	r.Ask = func(_ context.Context, q supervisor.Question) supervisor.Answer {
		if q.Prompt != "your name" {
			return supervisor.Answer{Denied: "failed"}
		}
		return supervisor.Answer{Value: json.RawMessage(`"Ada"`)}
	}
	for _, r.Tool.Idempotent = range []bool{true, false} { // with and without a go of its own
		if got := w.call(r); !got.OK() || got.Text() != `answered "Ada"` {
			t.Errorf("%s %q", got.Message, got.Text())
		}
	}
	r.Ask = nil
	if got := w.call(r); !got.OK() || !strings.HasPrefix(got.Text(), "nobody") {
		t.Errorf("without anybody: %s %q", got.Message, got.Text())
	}
	asked := make(chan struct{})
	r.Ask = func(ctx context.Context, _ supervisor.Question) supervisor.Answer {
		close(asked)
		<-ctx.Done()
		return supervisor.Answer{Denied: "failed"}
	}
	c := w.fleet.Start(t.Context(), r)
	await(t, asked)
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	if got := c.Result(); !strings.Contains(got.Message, "was aborted") {
		t.Errorf("aborted while somebody thinks: %s %s", got.Status, got.Message)
	}
}

// Calls that keep their process find it again, at the worker that has it.
func TestKeptProcessesOfWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	w.work("w1", nil)
	w.work("w2", nil)
	r := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "count"}, Arguments: json.RawMessage(`{"text":""}`), Keep: &supervisor.Keep{}}
	for want := range 4 {
		if got := w.call(r); !got.OK() || got.Text() != string(rune('1'+want)) {
			t.Fatalf("call %d: %s %q at %+v", want+1, got.Message, got.Text(), got.Where)
		}
	}
}

// What a worker's owner allows of its files is judged by what a call has opened: a link that is
// put in the place of a path after the offer was taken leads to nothing else.
func TestALinkBehindTheOfferOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	allowed, other := filepath.Join(w.dir, "allowed"), filepath.Join(w.dir, "other")
	path := filepath.Join(allowed, "x")
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "file"), []byte("shown"), 0o644)); err != nil {
		t.Fatal(err)
	}
	w.work("w1", func(c *worker.Config) { c.Ceilings.Read = []string{allowed} })
	r := shell("cat " + path + "/file")
	r.Where, r.Sandbox = map[string]string{"worker": "w1"}, &supervisor.Policy{Read: []string{path}}
	r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "hidden-value"}} // with one it is prepared anew
	r.Placed = func(string, int) error { return errors.Join(os.Remove(path), os.Symlink(other, path)) }
	if got := w.call(r); got.Status != api.StatusStartFailed || !strings.Contains(got.Message, "read none of "+other) {
		t.Errorf("%s %s %q", got.Status, got.Message, got.Text())
	}
}
