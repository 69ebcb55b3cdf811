package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/shield"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
)

// Servers that fail, flood or lie while they are called.
func init() {
	for name, script := range map[string]func(*peer){
		"takes all tasks": func(p *peer) {
			shield.Prepare() // for this is Go, too
			p.initialize()
			call := p.call()
			for exec.Command("sleep", "60").Start() == nil {
			}
			p.text(call, "no task left")
			p.drain()
		},
		"dies in call": func(p *peer) {
			p.initialize()
			m := p.call()
			p.progress(m, 1, 2, "half")
			fmt.Fprint(os.Stderr, "out of luck")
			if m.param("name") == "signal" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				hang()
			}
			os.Exit(4)
		},
		"answers without an answer": func(p *peer) {
			p.initialize()
			for {
				m := p.call()
				p.progress(m, 1, 2, "half")
				p.say(`{"jsonrpc":"2.0","id":%s}`, m.ID)
			}
		},
		"dies and leaves": func(p *peer) {
			p.initialize()
			p.call()
			left := exec.Command("sleep", "600")
			left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if left.Start() == nil {
				os.Exit(4)
			}
		},
		"answers and dies": func(p *peer) { p.initialize(); p.text(p.call(), fmt.Sprint(os.Getpid())); os.Exit(5) },
		"answers by text": func(p *peer) {
			for {
				switch m := p.next(); m.Method {
				case "initialize":
					p.say(`{"jsonrpc":"2.0","id":"%s","result":%s}`, m.ID, initialized)
				case "tools/list":
					p.say(`{"jsonrpc":"2.0","id":"%s","result":{"tools":[%s]}}`, m.ID, plainTool)
				case "tools/call":
					p.say(`{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"hello"}]}}`, m.ID)
				}
			}
		},
		"lies": func(p *peer) {
			p.initialize()
			m := p.call()
			p.say(`{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`)
			p.say(`{"jsonrpc":"2.0","id":"x%s","result":{"content":[]}}`, m.ID)
			p.say(`{"jsonrpc":"2.0","id":null,"result":{}}`)
			p.say(`{"level":"error","id":%s,"error":"a log in JSON"}`, m.ID)
			p.say(`{"id":4712,"result":{"content":[]}}`)
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":%s}}`, m.ID, nested(20000)[1:])
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, m.ID)
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			p.say(`{"jsonrpc":"2.0","id":11,"method":"elicitation/create"}`)
			p.say(`{"jsonrpc":"2.0","id":12,"method":"no/such/method","params":{}}`)
			p.say(`{"jsonrpc":"2.0","id":15,"method":"ping"}`)
			var answers []string
			for len(answers) < 3 {
				if m := p.next(); m.Method == "" {
					answers = append(answers, string(m.ID)+" "+string(m.Error)+string(m.Result))
				}
			}
			slices.Sort(answers)
			p.text(m, strings.Join(answers, "\n"))
			p.text(m, "twice")
			p.text(p.call(), "next")
			p.drain()
		},
		"floods": func(p *peer) {
			p.initialize()
			m := p.call()
			for i := range 20000 {
				p.progress(m, i, 20000, "")
				p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			for i := range 10 * maxRequests {
				p.say(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?"}}`, i)
			}
			refused := 0
			for refused < 9*maxRequests {
				if m := p.next(); strings.Contains(string(m.Error), "too many") {
					refused++
				}
			}
			p.text(m, "done")
			p.drain()
		},
		"huge answer":     func(p *peer) { p.initialize(); p.text(p.call(), big(maxMessageBytes)); hang() },
		"closes in call":  func(p *peer) { p.initialize(); p.call(); _ = os.Stdout.Close(); hang() },
		"garbage in call": func(p *peer) { p.initialize(); p.call(); fmt.Print(strings.Repeat("garbage\n", 2*maxStrays)); hang() },
		"deaf":            func(p *peer) { p.initialize(); p.await("notifications/initialized"); _ = os.Stdin.Close(); os.Exit(6) },
		"deaf and alive": func(p *peer) {
			p.initialize()
			p.await("notifications/initialized")
			_ = os.Stdin.Close()
			fmt.Fprintln(os.Stderr, "deaf now")
			hang()
		},
		"reads no more": func(p *peer) { p.initialize(); hang() },
	} {
		scripts[name] = script
	}
}

// Whatever ends a server in mid-call, the call ends with a typed reason, and
// the next one finds a new server.
func TestServersThatFailInACall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role, tool string
		kind       plugin.FailureKind
		want       string
		exit       *plugin.CommandExit
	}{
		{"dies in call", "x", plugin.Crashed, `MCP server "test" exited with status 4; it wrote to stderr: out of luck`, &plugin.CommandExit{Code: 4}},
		{"dies in call", "signal", plugin.Crashed, "died of SIGKILL", &plugin.CommandExit{Signal: "SIGKILL"}},
		{"huge answer", "x", plugin.BrokeProtocol, "more than 16777216 bytes", nil},
		{"closes in call", "x", plugin.BrokeProtocol, "has closed its stdout and goes on running", nil},
		{"garbage in call", "x", plugin.BrokeProtocol, "not JSON-RPC", nil},
		{"answers without an answer", "x", plugin.BrokeProtocol, "neither a result nor an error", nil},
		{"deaf", "x", plugin.Crashed, "exited with status 6", &plugin.CommandExit{Code: 6}},
	} {
		a := server(t, test.role)
		for range 2 {
			r, o := call1(t, a, test.tool, "{}")
			if got := r.text(); strings.Contains(got, "progress 0.5") && !strings.Contains(got, "[no result; the last progress was 1 of 2: half]") {
				t.Errorf("%s %s: progress is not the partial result: %q", test.role, test.tool, got)
			}
			failure, ok := errors.AsType[*plugin.Failure](o.err)
			if !ok || failure.Kind != test.kind || !strings.Contains(o.err.Error(), test.want) || !reflect.DeepEqual(failure.Exit, test.exit) {
				t.Errorf("%s %s: %v (%v), want %s (%v)", test.role, test.tool, o.err, failure.Exit, test.want, test.exit)
			}
		}
	}
}

// What a server takes before it closes its stdin is lost in silence; after it
// nothing has been asked.
func TestAServerThatIsDeaf(t *testing.T) {
	t.Parallel()
	s, err := server(t, "deaf and alive").session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the server to be deaf", func() bool { return strings.Contains(s.stderr.text(), "deaf") })
	_, asked, err := s.callTool(t.Context(), "x", []byte("{}"), plugin.NewOutput(new(record).send))
	if failure, ok := errors.AsType[*plugin.Failure](err); asked || !ok || failure.Kind != plugin.BrokeProtocol || !strings.Contains(err.Error(), "takes no messages") {
		t.Errorf("asked %t, %v", asked, err)
	}
}

func TestAServerThatDiesBetweenCallsIsStartedAnew(t *testing.T) {
	t.Parallel()
	a := server(t, "answers and dies")
	seen := map[string]bool{}
	for range 20 {
		r, o := call1(t, a, "x", "{}")
		if o.err != nil {
			t.Fatal(o.err)
		}
		seen[r.text()] = true
		wait.Until(t, "the server's end", a.current.over)
	}
	if len(seen) != 20 {
		t.Errorf("%d servers", len(seen))
	}
}

// A write to a server that reads nothing holds nobody up.
func TestAServerThatReadsNoMore(t *testing.T) {
	t.Parallel()
	a := server(t, "reads no more")
	ctx, stop := context.WithCancelCause(t.Context())
	_, done := begin(ctx, a, "x", `{"x":"`+big(1<<20)+`"}`)
	s, err := a.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the call to begin", func() bool { return len(s.wire.running()) == 1 })
	stop(errStop)
	a.close()
	if o := ended(t, done); !errors.Is(o.err, plugin.ErrCancelled) {
		t.Errorf("error %v", o.err)
	}
}

func TestLiesAreSeenThrough(t *testing.T) {
	t.Parallel()
	a := server(t, "lies")
	r, o := call1(t, a, "x", "{}")
	if o.err != nil {
		t.Fatal(o.err)
	}
	for _, part := range []string{
		"11 {\"code\":-32600,\"message\":\"the request has no params\"}", "12 {\"code\":-32601", "15 {}",
	} {
		if !strings.Contains(r.text(), part) {
			t.Errorf("no answer %q in %s", part, r.text())
		}
	}
	if strings.Contains(r.text(), "twice") {
		t.Error("it took the second answer")
	}
	if r, o := call1(t, a, "x", "{}"); o.err != nil || r.text() != "text next" {
		t.Errorf("the next call: %q, %v", r.list(), o.err)
	}
}

// A server may keep the ids of requests as text.
func TestAnswersByText(t *testing.T) {
	t.Parallel()
	if r, o := call1(t, server(t, "answers by text"), "x", "{}"); o.err != nil || r.text() != "text hello" {
		t.Errorf("%q, %v", r.list(), o.err)
	}
}

func TestAFloodIsTakenInOrder(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	r, o := call1(t, server(t, "floods"), "x", "{}")
	events := r.list()
	last := len(events) - 1 // before it a question, where the server has not answered sooner
	if o.err != nil || last < 20000 || last > 20001 || events[19999] != "progress 0.99995 19999 of 20000" || events[last] != "text done" {
		t.Errorf("%d events, %v", len(events), o.err)
	}
}
