package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// Servers that write to stderr.
func init() {
	for name, script := range map[string]func(*peer){
		// as told: before and after its answer; then it makes a file.
		"writes around": func(p *peer) {
			p.answer(p.await("initialize"), withLogging)
			for {
				m := p.call()
				fmt.Fprint(os.Stderr, m.param("arguments", "before"))
				p.progress(m, 1, 1, m.param("arguments", "before"))
				p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":%q}}`, m.param("arguments", "before"))
				if m.param("arguments", "exit") != "" {
					os.Exit(4)
				}
				p.text(m, "done")
				fmt.Fprint(os.Stderr, m.param("arguments", "after"))
				if made := m.param("arguments", "make"); made != "" {
					_ = os.WriteFile(made, nil, 0o600)
				}
			}
		},
		"floods stderr": func(p *peer) {
			p.initialize()
			go func() {
				for line := strings.Repeat("x", 4<<10); ; {
					fmt.Fprintln(os.Stderr, line)
				}
			}()
			for {
				p.text(p.call(), "done")
			}
		},
	} {
		scripts[name] = script
	}
}

// writing is a call of the server that writes around its answer.
func writing(kept bool, arguments map[string]string) supervisor.Request {
	raw, _ := json.Marshal(arguments)
	r := request(argv("writes around"), "plain", string(raw), unconfined)
	if kept {
		r.Keep = &supervisor.Keep{}
	}
	return r
}

// toldIn is what the tool told by itself.
func toldIn(events <-chan api.Event) string {
	var told []string
	for event := range events {
		if event.Kind == api.EventProgress && event.Fraction != nil {
			told = append(told, "progress "+event.Message)
		}
		if event.Kind == api.EventLog {
			told = append(told, "log "+event.Message)
		}
	}
	return strings.Join(told, " ")
}

func stderrOf(r *api.Result) string { return r.Output.Stderr.Head + r.Output.Stderr.Tail }

// What a server writes to stderr, and tells, before its answer is in the call's result
// and events, and in no other one's.
func TestStderrBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for kept, calls := range map[bool]int{true: 100, false: 20} {
		for i := range calls {
			want := fmt.Sprintf("<%d>", i)
			request, events := writing(kept, map[string]string{"before": want}), make(chan api.Event, 100)
			request.Events = events
			r := run(t, host, request)
			close(events)
			wantOK(t, r, "done")
			if got, told := stderrOf(r), toldIn(events); got != want || told != "progress 1 of 1: "+want+" log warning: "+want {
				t.Errorf("kept %t: stderr %q, told %q, want %q", kept, got, told, want)
			}
		}
	}
}

// What it writes between two calls is in no later result.
func TestStderrBetweenCalls(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for i := range 20 {
		made := filepath.Join(t.TempDir(), "made")
		r := run(t, host, writing(true, map[string]string{"after": "<after>", "make": made}))
		wantOK(t, r, "done")
		wait.Until(t, "the server to have written", func() bool { _, err := os.Stat(made); return err == nil })
		r = run(t, host, writing(true, map[string]string{"before": "<own>"}))
		if got := stderrOf(r); got != "<own>" {
			t.Errorf("call %d: stderr %q", i, got)
		}
	}
}

// The end of stderr that an error quotes is that of its own call.
func TestAnErrorQuotesItsOwnCall(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	wantOK(t, run(t, host, writing(true, map[string]string{"before": "<secret of one>"})), "done")
	r := run(t, host, writing(true, map[string]string{"before": "<own>", "exit": "yes"}))
	if r.ToolError == nil || !strings.Contains(r.ToolError.Message, "<own>") || strings.Contains(r.ToolError.Message, "secret") {
		t.Errorf("%s: %+v", r.Status, r.ToolError)
	}
}

func TestAFloodOfStderrHoldsNoCallUp(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for range 5 {
		r := request(argv("floods stderr"), "plain", "{}", unconfined)
		r.Keep = &supervisor.Keep{}
		wantOK(t, run(t, host, r), "done")
	}
}
