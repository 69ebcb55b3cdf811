package fleet_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// What is refused before it begins is refused as on one machine, wherever that is found.
func TestRefusedAsOnOneMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	here, err := fleet.Open(t.Context(), fleet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	plugin := func(change func(*supervisor.Request)) supervisor.Request {
		r := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "echo"}, Arguments: json.RawMessage(`{"text":"hi"}`)}
		change(&r)
		return r
	}
	for what, r := range map[string]supervisor.Request{
		"arguments that are no JSON": plugin(func(r *supervisor.Request) { r.Arguments = json.RawMessage(`{"text":`) }),
		"metadata that is no JSON":   plugin(func(r *supervisor.Request) { r.Meta = json.RawMessage(`{`) }),
		"another file":               plugin(func(r *supervisor.Request) { r.SHA256 = strings.Repeat("0", 64) }),
		"no such tool":               plugin(func(r *supervisor.Request) { r.Tool.Name = "nosuch" }),
		"no such file":               plugin(func(r *supervisor.Request) { r.Tool.Path = "/no/such/file" }),
		"no plugin":                  plugin(func(r *supervisor.Request) { r.Tool.Path = "/bin/true" }),
		"no such command":            {Command: &supervisor.Command{Argv: []string{"nosuchprogram"}}},
		"a nameless secret":          plugin(func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Value: "long-enough"}} }),
	} {
		want, got := here.Call(wait.Context(t), r), w.call(r)
		if got.OK() || got.Status != want.Status || got.Reason != want.Reason || !reflect.DeepEqual(got.Retry, want.Retry) || got.Message != want.Message {
			t.Errorf("%s: %s (%s), and here %s (%s)\n%s\n%s", what, got.Status, got.Reason, want.Status, want.Reason, got.Message, want.Message)
		}
	}
}

// A call that no worker can make has its events, as each call.
func TestEventsOfARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	events := make(chan api.Event, 10)
	r := shell("true")
	r.Events, r.FilesTo = events, t.TempDir()
	if got := w.call(r); got.Status != api.StatusPolicyViolation {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	kinds := ""
	for len(events) > 0 {
		kinds += string((<-events).Kind) + " "
	}
	if kinds != "tool_queued tool_failed " {
		t.Errorf("events %q", kinds)
	}
}

// A result without a structured value has none after its way either.
func TestAResultWithoutAValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	if got := w.call(shell("echo x")); !got.OK() || got.Structured != nil {
		t.Errorf("%s, structured %q", got.Message, got.Structured)
	}
	if got := w.call(shell("true")); !got.OK() || got.Content == nil {
		t.Errorf("%s: the content is null, and not empty", got.Message)
	}
}

// What a call uses is seen while it runs on this machine, and it is gone when that is.
func TestProcessesOfALocalCall(t *testing.T) {
	t.Parallel()
	f, err := fleet.Open(t.Context(), fleet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	c := f.Start(t.Context(), shell("exec sleep 1000"))
	wait.Until(t, "its processes are seen", func() bool { now, ok := c.Current(); return ok && now.Pids > 0 })
	c.Abort(api.ReasonUser)
	await(t, c.Gone())
	if _, ok := c.Current(); ok || c.Result().Status != api.StatusCancelled {
		t.Errorf("%s", c.Result().Message)
	}
	w := newWorld(t, "w1")
	w.work("w1", nil)
	there := w.fleet.Start(t.Context(), shell("true"))
	await(t, there.Gone())
	if _, ok := there.Current(); ok || !there.Result().OK() {
		t.Errorf("%s", there.Result().Message)
	}
}

// A call sends what somebody wants to hear, and no more: where nobody is told of events, its
// result alone.
func TestNothingIsSentForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	var sent []string
	frames, err := conn.SubscribeSync(link.FrameSubject(w.key.Public(), "w1", "*"))
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan api.Event, 100)
	over := "" // what is late of the call before may be sent again
	for _, of := range []struct {
		events chan api.Event
		want   string
	}{{nil, "result"}, {told, "tool_started result"}} {
		sent = nil
		last := ""
		r := shell("true")
		r.Events = of.events
		if got := w.call(r); !got.OK() {
			t.Fatal(got.Message)
		}
		for len(sent) == 0 || sent[len(sent)-1] != "result" {
			m, err := frames.NextMsgWithContext(wait.Context(t))
			if err != nil {
				t.Fatal(err)
			}
			said, err := link.Frames(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if m.Subject == over {
				continue
			}
			last = m.Subject
			for _, f := range said {
				var e api.Event
				if raw := f.GetData().GetEvent(); raw != nil && json.Unmarshal(raw, &e) == nil {
					sent = append(sent, string(e.Kind))
				} else if f.GetData() != nil {
					sent = append(sent, "result")
				}
			}
		}
		over = last
		if got := strings.Join(sent, " "); got != of.want {
			t.Errorf("sent were %q, want %q", got, of.want)
		}
	}
	kinds := ""
	for len(told) > 0 {
		e := <-told
		kinds += string(e.Kind) + " "
		if e.Kind == api.EventFinished && e.Status != api.StatusOK {
			t.Errorf("the last event has the status %q", e.Status)
		}
	}
	if kinds != "tool_queued tool_started tool_finished " {
		t.Errorf("events %q", kinds)
	}
}
