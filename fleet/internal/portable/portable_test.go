package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Each field of a request either goes over the wire, or keeps the call where it is, or is
// of this list. A new field of Request fails here until it is decided.
func TestEachFieldIsDecided(t *testing.T) {
	portable := map[string]bool{
		"Tool": true, "Command": true, "Name": true, "Arguments": true, "Meta": true, "Timeout": true, "Timeouts": true, "Profiles": true,
		"Stream": true, "Grace": true, "Limits": true, "Sandbox": true, "Env": true, "SHA256": true, "ID": true, "Place": true, "EventOutputBytes": true,
		"Method": true, "Client": true, "Rounds": true, "Secrets": true, "Keep": true, "Ask": true, "Dir": true,
	}
	here := map[string]string{
		"Anew": "it is of a Describe", "Share": "its key orders one machine's slots; its bounds stay, and so does what is apart by it",
		"LogArgs": "the log is this machine's", "Events": "they are sent as frames",
		"Where": "it is the fleet's own", "Reserved": "it is of this machine's slots", "Lease": "it is the worker's own", "Placed": "it is the fleet's own", "OnRecord": "Placed comes behind it", "Left": "what it says goes with the go", "Pool": "one without bounds is a name",
		"Prestart": "processes wait on the caller's machine; a call that finds none has its own",
	}
	stays := map[string]func(*supervisor.Request){
		"FilesTo": func(r *supervisor.Request) { r.FilesTo = "/x" },
		"Dir":     func(r *supervisor.Request) { r.Dir = "/x" },
		"Lock":    func(r *supervisor.Request) { r.Lock.File = "/x" },
		"Keep": func(r *supervisor.Request) {
			r.Keep = &supervisor.Keep{Notices: func(_, _ string, _ json.RawMessage) {}}
		},
		"Host": func(r *supervisor.Request) { r.Host = func(net.Listener) {} },
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[supervisor.Request]()) {
		if field.Anonymous {
			continue // its own fields are among them
		}
		set := stays[field.Name]
		if !portable[field.Name] && here[field.Name] == "" && set == nil {
			t.Errorf("Request.%s is neither sent to a worker nor refused by name", field.Name)
		}
		if set != nil {
			r := request()
			set(&r)
			if len(Stays(r, supervisor.Config{})) != 1 {
				t.Errorf("with %s: %q", field.Name, Stays(r, supervisor.Config{}))
			}
		}
	}
}

func request() supervisor.Request {
	return supervisor.Request{Command: &supervisor.Command{Argv: []string{"echo", "x"}}}
}

// What is in the fields that are sent and cannot be, is refused by name, too; on both
// sides.
func TestStays(t *testing.T) {
	for want, set := range map[string]func(*supervisor.Request){
		"read":              func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Read: []string{"/x"}} },
		"write":             func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Write: []string{"/x"}} },
		"workspace":         func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Workspace: "/x"} },
		"tier none":         func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Tier: sandbox.TierNone} },
		"a pool":            func(r *supervisor.Request) { r.Pool.Running = 1 },
		"a pool (running)":  func(r *supervisor.Request) { r.Pool.Running = -1 },
		"a quota of calls":  func(r *supervisor.Request) { r.Share.Waiting = -1 },
		"a quota":           func(r *supervisor.Request) { r.Share.Running = 1 },
		"one share alone":   func(r *supervisor.Request) { r.Keep, r.Share.Apart = &supervisor.Keep{}, true },
		"stdin":             func(r *supervisor.Request) { r.Command.Stdin = strings.NewReader("x") },
		"Go functions":      func(r *supervisor.Request) { r.Command.Tool = &supervisor.CommandTool{} },
		"I/O":               func(r *supervisor.Request) { r.Limits.IOMax = []cgroup.IOMax{{}} },
		"more than 256 KiB": func(r *supervisor.Request) { r.Arguments = make([]byte, MaxBytes) },
		"more than 512 KiB": func(r *supervisor.Request) {
			r.Secrets = slices.Repeat([]supervisor.Secret{{Value: strings.Repeat("x", 64<<10)}}, 9)
		},
		"an argument": func(r *supervisor.Request) { r.Command.Argv = []string{"echo", "\xff"} },
		"a variable":  func(r *supervisor.Request) { r.Env = []string{"A=\xff"} },
	} {
		r := request()
		set(&r)
		if got := Stays(r, supervisor.Config{}); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Stays(request(), supervisor.Config{}); len(got) != 0 {
		t.Errorf("a plain command stays for %q", got)
	}
	if got := Stays(request(), supervisor.Config{Sandbox: sandbox.Policy{Read: []string{"/x"}}}); len(got) != 1 {
		t.Errorf("with the host's own policy: %q", got)
	}
	for want, raw := range map[string]string{
		"unknown field": `{"tool":{},"argv":["x"],"later":1}`, "cannot read": `{`, "no tool": `{}`, "no adapter": `{"tool":{"Adapter":true}}`,
		"makes no command tools": `{"tool":{},"argv":["x"],"source":{}}`, "no sandbox": `{"tool":{},"argv":["x"],"tier":"none"}`,
	} {
		if _, _, err := Read([]byte(raw), Machine{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// A request comes out as it went in, with what its caller's configuration adds.
func TestWhatIsWrittenIsRead(t *testing.T) {
	r := supervisor.Request{
		Tool: supervisor.Tool{Path: "/bin/x", Name: "n", ReadOnly: true}, Name: "shown", Arguments: json.RawMessage(`{"a":1}`), Meta: json.RawMessage(`{"b":2}`),
		Timeout: time.Second, Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Timeout: time.Minute}}, Stream: budget.Stream{Gap: time.Second}, Grace: time.Second,
		Limits: supervisor.Limits{MemoryBytes: 5 << 20, Pids: supervisor.Unlimited}, Env: []string{"A=b"}, ID: "id", Place: api.Place{TurnID: "t"}, EventOutputBytes: 7,
		Sandbox: &sandbox.Policy{
			Network: sandbox.NetworkGrants, Grants: []network.Grant{{Host: "example.com", Ports: []uint16{443}}}, AskNetwork: true, Strict: true,
			Read: []string{"/r"}, Write: []string{"/w"}, Require: []string{"landlock"}, Allow: []string{"sharedUid"},
		},
		Dir: "/r", Method: "prompts/get", Client: json.RawMessage(`{"c":3}`), Rounds: true, Keep: &supervisor.Keep{Idle: time.Second, MaxCalls: 4, Shared: true},
		Secrets: []supervisor.Secret{{Variable: "KEY", Value: "hidden-value"}, {Variable: "CERT", File: true, Value: "other-value"}},
	}
	config := supervisor.Config{Timeouts: []budget.Ask{{Layer: budget.LayerClient, Max: time.Hour}}, Limits: supervisor.Limits{CPUPercent: 50}}
	raw, err := Write(r, config, "abc")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("-value")) {
		t.Errorf("a secret is on the wire: %s", raw)
	}
	got, _, err := Read(raw, Machine{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Reveal(&got, []string{"hidden-value"}); err == nil {
		t.Error("one value is taken for two secrets")
	}
	if err := Reveal(&got, []string{"hidden-value", "other-value"}); err != nil {
		t.Fatal(err)
	}
	want := r
	want.SHA256, want.Timeouts, want.Profiles = "abc", append(config.Timeouts, r.Timeouts...), nil
	want.Limits = r.Limits.Over(config.Limits).Over(supervisor.DefaultLimits())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if err := (Ceilings{Pids: 10}).Check(got); err == nil || !strings.Contains(err.Error(), "over the worker's ceiling of 10") {
		t.Errorf("no limit is within a ceiling: %v", err)
	}
	if err := (Ceilings{Timeout: time.Hour}).CheckTimeout(budget.Infinite); err == nil || !strings.Contains(err.Error(), "infinity") {
		t.Errorf("%v", err)
	}
}

// A request is about as long on the wire as what it is made of.
func TestWhatIsWrittenIsNotLonger(t *testing.T) {
	r := request()
	r.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("<td>&", 50_000) + `"}`)
	raw, err := Write(r, supervisor.Config{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := Read(raw, Machine{}); err != nil || !bytes.Equal(got.Arguments, r.Arguments) {
		t.Errorf("%d bytes are %d: %v", len(r.Arguments), len(got.Arguments), err)
	}
	r.Env = slices.Repeat([]string{"A=" + strings.Repeat("\x01", 50_000)}, 2)
	if _, err := Write(r, supervisor.Config{}, ""); !errors.Is(err, ErrTooLong) {
		t.Errorf("what is longer: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	raw, _ := Write(request(), supervisor.Config{}, "")
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, _, err := Read(raw, Machine{})
		if err == nil && (r.Sandbox == nil || r.Sandbox.Tier == sandbox.TierNone || r.Sandbox.Workspace != "" || (Ceilings{}).Check(r) == nil && len(r.Sandbox.Read) > 0) {
			t.Errorf("%s is let through", raw)
		}
	})
}
