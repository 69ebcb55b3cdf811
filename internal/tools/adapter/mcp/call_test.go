package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
)

// Servers that are called.
func init() {
	for name, script := range map[string]func(*peer){
		// content answers with the argument "result", as it is.
		"content": func(p *peer) {
			p.initialize()
			for {
				m := p.call()
				p.answer(m, m.param("arguments", "result"))
			}
		},
		"tells all": func(p *peer) {
			p.answer(p.await("initialize"), withLogging)
			var m, level message
			for m.ID == nil || level.ID == nil {
				switch next := p.next(); next.Method {
				case "logging/setLevel":
					level = next
				case "tools/call":
					m = next
				}
			}
			p.answer(level, "{}")
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":"set to %s","_meta":null}}`, level.param("level"))
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"not asked for"}}`)
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":1},"_meta":{"k":1.50}}}`)
			p.progress(m, 1, 4, "one")
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":2.5}}`, m.param("_meta", "progressToken"))
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"somebody else's","progress":3}}`)
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":3}}`)
			p.say(`{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{}}`)
			p.progress(m, 9, 4, "")
			p.text(m, "done")
			p.drain()
		},
		"logs afterwards": func(p *peer) {
			p.initialize()
			p.text(p.call(), "done")
			p.await("notifications/roots/list_changed")
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":1}}}`)
			p.drain()
		},
		"refuses call": func(p *peer) {
			p.initialize()
			p.refuse(p.call(), -32602, "no tool of that name")
			p.refuse(p.call(), -32603, "disk full")
			p.drain()
		},
		"names": func(p *peer) {
			p.initialize()
			for {
				switch m := p.next(); m.Method {
				case "tools/list":
					fmt.Fprintln(os.Stderr, "LISTED")
					p.answer(m, `{"tools":[{"name":"admin.tools/x","inputSchema":{"type":"object"}},{"name":"x_0123456789","inputSchema":{"type":"object"}}]}`)
				case "tools/call":
					p.text(m, m.param("name")+m.param("arguments"))
				}
			}
		},
		"answers late": func(p *peer) {
			p.initialize()
			m := p.call()
			p.progress(m, 1, 2, "half")
			cancelled := p.await("notifications/cancelled")
			if cancelled.param("requestId") != string(m.ID) {
				panic("it cancels " + cancelled.param("requestId") + ", not " + string(m.ID))
			}
			switch m.param("name") {
			case "refuse":
				p.refuse(m, -32000, "cancelled as you wished")
			case "error":
				p.answer(m, `{"isError":true,"content":[{"type":"text","text":"stopped in the middle"}]}`)
			default:
				p.text(m, "late: "+cancelled.param("reason"))
			}
			p.drain()
		},
		"obeys": func(p *peer) {
			p.initialize()
			m := p.call()
			p.progress(m, 3, 10, "")
			p.await("notifications/cancelled")
			p.text(p.call(), "still here")
			p.drain()
		},
		"dies of cancel": func(p *peer) {
			p.initialize()
			p.progress(p.call(), 3, 10, "")
			p.await("notifications/cancelled")
			os.Exit(0)
		},
		"only discover": func(p *peer) {
			p.modern = true
			for {
				switch m := p.next(); m.Method {
				case "initialize":
					p.refuse(m, -32601, "Method not found")
				case "server/discover":
					p.answer(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"7"}}}`)
				case "tools/list":
					p.answer(m, `{"resultType":"complete","tools":[`+plainTool+`]}`)
				case "tools/call":
					p.progress(m, 1, 2, "")
					p.answer(m, fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, m.param("_meta", "io.modelcontextprotocol/protocolVersion")))
				}
			}
		},
	} {
		scripts[name] = script
	}
}

// What a server tells before its answer comes before the result, in order.
func TestProgressAndLog(t *testing.T) {
	t.Parallel()
	r, o := call1(t, server(t, "tells all"), "x", "{}")
	want := []string{"log warning: db: set to info", `log info: {"n":1}`, "progress 0.25 1 of 4: one", "progress ? 2.5", "progress 1 9 of 4", "text done"}
	if got := r.list(); !slices.Equal(got, want) || o.err != nil {
		t.Errorf("sent %q, want %q; %v", got, want, o.err)
	}
	if meta := r.events[0].GetLog().GetMeta(); len(meta) > 0 {
		t.Errorf("beside the first message stands %q", meta)
	}
	if meta := string(r.events[1].GetLog().GetMeta()); meta != `{"k":1.50}` {
		t.Errorf("beside the second message stands %q", meta)
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	a := server(t, "refuses call")
	_, o := call1(t, a, "x", "{}")
	if _, ok := errors.AsType[*plugin.InvalidArgumentsError](o.err); !ok || !strings.Contains(o.err.Error(), "no tool of that name") {
		t.Errorf("error %v", o.err)
	}
	_, o = call1(t, a, "x", "{}")
	if o.err == nil || o.err.Error() != `MCP server "test": disk full (code -32603)` {
		t.Errorf("error %v", o.err)
	}
	_, o = call1(t, a, "x", "{")
	if _, ok := errors.AsType[*plugin.InvalidArgumentsError](o.err); !ok {
		t.Errorf("error %v", o.err)
	}
}

// A name that was replaced is looked up, others are not.
func TestNames(t *testing.T) {
	t.Parallel()
	a := server(t, "names")
	listed := func() bool { return strings.Contains(a.latest(&a.current).stderr.text(), "LISTED") }
	if r, o := call1(t, a, "plain", `{"n": 12345678901234567890}`); o.err != nil || r.text() != `text plain{"n":12345678901234567890}` || listed() {
		t.Errorf("%q, %v, listed %t", r.list(), o.err, listed())
	}
	for safe, want := range map[string]string{"admin_tools_x_4ce2045fbb": "text admin.tools/x{}", "x_0123456789": "text x_0123456789{}"} {
		if r, o := call1(t, a, safe, ""); o.err != nil || r.text() != want {
			t.Errorf("%q, %v", r.list(), o.err)
		}
	}
	if _, o := call1(t, a, "y_0123456789", ""); o.err == nil || !strings.Contains(o.err.Error(), `no tool "y_0123456789"`) {
		t.Errorf("error %v", o.err)
	}
	if n := strings.Count(a.latest(&a.current).stderr.text(), "LISTED"); n > 2 {
		t.Errorf("listed %d times", n)
	}
	if _, ok := a.Find("not a name"); ok {
		t.Error("found what cannot be a name")
	}
}

func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	a := server(t, "content")
	type running struct {
		r    *record
		done <-chan outcome
	}
	var all []running
	for i := range 50 {
		r, done := begin(t.Context(), a, "x", fmt.Sprintf(`{"result":{"content":[{"type":"text","text":"%d"}]}}`, i))
		all = append(all, running{r, done})
	}
	for i, c := range all {
		if o := ended(t, c.done); o.err != nil || c.r.text() != fmt.Sprintf("text %d", i) {
			t.Errorf("call %d: %q, %v", i, c.r.list(), o.err)
		}
	}
}

var errStop = fmt.Errorf("%w: enough", plugin.ErrCancelled)

// stopAfter calls a tool and ends the call once it has made progress.
func stopAfter(t *testing.T, a *adapter, tool, part string) (*record, outcome) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	r, done := begin(ctx, a, tool, "{}")
	r.await(t, part)
	stop(errStop)
	return r, ended(t, done)
}

func TestAnAnswerAfterTheEndStillCounts(t *testing.T) {
	t.Parallel()
	r, o := stopAfter(t, server(t, "answers late"), "x", "half")
	if !strings.Contains(r.text(), "text late: the call was cancelled: enough") || o.err != nil {
		t.Errorf("%q, %v", r.list(), o.err)
	}
	r, o = stopAfter(t, server(t, "answers late"), "error", "half")
	if !strings.Contains(r.text(), "text stopped in the middle") || o.err == nil || o.err.Error() != "stopped in the middle" {
		t.Errorf("%q, %v", r.list(), o.err)
	}
	r, o = stopAfter(t, server(t, "answers late"), "refuse", "half")
	if !errors.Is(o.err, plugin.ErrCancelled) || !strings.Contains(o.err.Error(), "as you wished") || !strings.Contains(r.text(), "the last progress was 1 of 2: half") {
		t.Errorf("%q, %v", r.list(), o.err)
	}
}

// A server that obeys answers no more: what is left is how far it was.
func TestTheLastProgressIsThePartialResult(t *testing.T) {
	t.Parallel()
	a := server(t, "obeys")
	ctx, stop := context.WithCancelCause(t.Context())
	r, _ := begin(ctx, a, "x", "{}")
	r.await(t, "progress")
	stop(errStop)
	r.await(t, "text [no result; the last progress was 3 of 10]")
	if r, o := call1(t, a, "y", "{}"); o.err != nil || r.text() != "text still here" {
		t.Errorf("the next call: %q, %v", r.list(), o.err)
	}
	r, o := stopAfter(t, server(t, "dies of cancel"), "x", "progress")
	if !errors.Is(o.err, plugin.ErrCancelled) || strings.Count(r.text(), "last progress") != 1 {
		t.Errorf("%q, %v", r.list(), o.err)
	}
}

func TestACallThatEndsWhileItsServerStarts(t *testing.T) {
	t.Parallel()
	a := startAdapter(t, Options{}, argv("hangs at start")...)
	ctx, stop := context.WithCancelCause(t.Context())
	_, done := begin(ctx, a, "x", "{}")
	wait.Until(t, "the server to start", func() bool { return strings.Contains(a.latest(&a.current).stderr.text(), "database") })
	stop(errStop)
	o := ended(t, done)
	if !errors.Is(o.err, plugin.ErrCancelled) || !strings.Contains(o.err.Error(), "was starting; it wrote to stderr: connecting to the database") {
		t.Errorf("error %v", o.err)
	}
}

func TestAServerOfTheNewestProtocolAlone(t *testing.T) {
	t.Parallel()
	a := server(t, "only discover")
	l, err := listTools(t, a)
	if err != nil || len(l.Tools) != 1 || l.Version != "7" {
		t.Fatalf("%+v, %v", l, err)
	}
	r, o := call1(t, a, "plain", "{}")
	if o.err != nil || r.text() != "progress 0.5 1 of 2\ntext 2026-07-28" {
		t.Errorf("%q, %v", r.list(), o.err)
	}
}
