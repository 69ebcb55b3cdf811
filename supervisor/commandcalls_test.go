package supervisor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// lines is the simplest reader: it shows whole lines, and an output that ends with "broken" is not what was promised.
type lines struct{ open, all []byte }

func (l *lines) Write(p []byte) (done []api.Content) {
	l.all = append(l.all, p...)
	l.open = append(l.open, p...)
	for {
		line, rest, ok := bytes.Cut(l.open, []byte("\n"))
		if !ok {
			return done
		}
		done = append(done, api.Content{Type: "text", Text: string(line)})
		l.open = rest
	}
}

func (l *lines) End() ([]api.Content, json.RawMessage, error) {
	if bytes.HasSuffix(l.all, []byte("broken\n")) {
		return nil, nil, errors.New("this is broken")
	}
	structured, err := json.Marshal(len(l.all))
	return nil, structured, err
}

// scripted is a command tool that runs its one argument as a script.
func scripted(t *testing.T, script string) supervisor.Request {
	t.Helper()
	needShell(t)
	tool, err := supervisor.NewCommandTool(supervisor.CommandSpec{
		Description: &pluginv1.ToolDescription{
			Name:        "scripted",
			InputSchema: []byte(`{"type":"object","properties":{"script":{"type":"string"},"wait":{"type":"integer"}},"required":["script"],"additionalProperties":false}`), TimeoutArgument: "wait",
		},
		Build: func(arguments json.RawMessage) ([]string, []byte, error) {
			var in struct{ Script string }
			err := json.Unmarshal(arguments, &in)
			if in.Script == "refuse" {
				err = errors.New("script: not this one")
			}
			return []string{"sh", "-c", in.Script}, []byte("from stdin\n"), err
		},
		Reader: func() supervisor.OutputReader { return &lines{} },
		Exit: func(status int) (bool, string) {
			return status <= 1, map[int]string{1: "nothing found", 2: "bad question"}[status]
		},
		Shell: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]string{"script": script})
	if err != nil {
		t.Fatal(err)
	}
	return supervisor.Request{
		Command: &supervisor.Command{Argv: []string{"sh"}, Tool: tool}, Arguments: arguments,
		Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: time.Minute, Detail: "test"}},
	}
}

func TestCommandTool(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for _, test := range []struct {
		name, script string
		want         api.Status
		content      string
		structured   string
		toolError    string
		exit         int // -1 is none
	}{
		{"content", "cat; printf 'a\\nb\\n'", api.StatusOK, "from stdinab", "15", "", 0},
		{"a success after all", "exit 1", api.StatusOK, "nothing found", "0", "", 1},
		{"an explained failure", "echo x; exit 2", api.StatusToolError, "x", "", "status 2: bad question", 2},
		{"an unexplained failure", "exit 3", api.StatusToolError, "", "", "status 3", 3},
		{"broken output", "echo broken", api.StatusToolError, "broken", "", "this is broken", 0},
		{"killed", "echo x; kill -9 $$", api.StatusCrashed, "x", "", "SIGKILL", -1},
		{"refused", "refuse", api.StatusInvalidArgs, "", "", "not this one", -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := host.Call(t.Context(), scripted(t, test.script))
			wantStatus(t, r, test.want)
			if got := r.Text(); got != test.content {
				t.Errorf("content %q, want %q", got, test.content)
			}
			if string(r.Structured) != test.structured || r.Output.Stdout.Head != "" || r.Tool != "scripted" {
				t.Errorf("structured %s, stdout %+v, tool %q", r.Structured, r.Output.Stdout, r.Tool)
			}
			if wantCode := test.exit; wantCode >= 0 && (r.Exit.Code == nil || *r.Exit.Code != wantCode) || wantCode < 0 && r.Exit.Code != nil {
				t.Errorf("exit %+v, want %d", r.Exit, wantCode)
			}
			if test.toolError == "" && r.ToolError != nil || test.toolError != "" && !strings.Contains(r.ToolError.Message, test.toolError) {
				t.Errorf("tool error %+v, want %q", r.ToolError, test.toolError)
			}
			if r.Sandbox.Shell == (test.name == "refused") {
				t.Errorf("receipt: shell %v", r.Sandbox.Shell)
			}
		})
	}
}

// Lines that came before the deadline are there, and were shown as they came.
func TestCommandToolKeepsPartialContent(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := scripted(t, "echo early; exec sleep 100")
	events := make(chan api.Event, 100)
	r.Events = events
	c := host.Start(t.Context(), r)
	for e := range events {
		if e.Kind == api.EventOutput && e.Content.Text == "early" {
			break
		}
	}
	c.Abort(api.ReasonUser)
	result := c.Result()
	wantStatus(t, result, api.StatusCancelled)
	if result.Text() != "early" || !result.Partial || result.Structured != nil {
		t.Errorf("text %q, partial %v, structured %s", result.Text(), result.Partial, result.Structured)
	}
}

func TestCommandToolChecksItsArguments(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := scripted(t, "true")
	r.Arguments = json.RawMessage(`{"script":5}`)
	wantStatus(t, host.Call(t.Context(), r), api.StatusInvalidArgs)
	r.Arguments = json.RawMessage(`{"script":"exec sleep 100","wait":1000}`)
	r.Timeouts = nil
	result := host.Call(t.Context(), r)
	wantStatus(t, result, api.StatusTimeout)
	if result.Timing.Source != "call" || *result.Timing.TimeoutMs != time.Second.Milliseconds() {
		t.Errorf("timing %+v", result.Timing)
	}
	if _, err := supervisor.NewCommandTool(supervisor.CommandSpec{Description: &pluginv1.ToolDescription{Name: "x", InputSchema: []byte("{")}, Build: func(json.RawMessage) ([]string, []byte, error) { return nil, nil, nil }}); err == nil {
		t.Error("a broken schema was taken")
	}
}

// However early a call is stopped, its command hears of it: none sits out its grace.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for i := range 100 {
		r := scripted(t, "sleep 60")
		r.Grace = time.Minute
		r.Timeouts[0].Timeout = time.Duration(i+1) * 500 * time.Microsecond
		got := host.Call(t.Context(), r)
		wantStatus(t, got, api.StatusTimeout)
		if got.Timing.GraceMs > 30_000 || got.Kill.Survivors != 0 {
			t.Fatalf("stopped after %s: %+v, %+v", r.Timeouts[0].Timeout, got.Kill, got.Timing)
		}
	}
}

// A command that takes every task there is leaves the adapter what it needs.
func TestCommandTakesAllTasks(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			r := scripted(t, "(while :; do sleep 60 & done) 2>/dev/null; sleep 60 & exec sleep 60")
			r.Limits.Pids, r.Grace = 32, time.Second
			r.Timeouts[0].Timeout = 8 * time.Second
			got := host.Call(t.Context(), r)
			if got.Status != api.StatusTimeout || got.Usage.PidsLimitHits == 0 || got.Kill.Survivors != 0 {
				t.Errorf("%s, %+v, %+v, stderr %.300q", got.Status, got.Usage, got.Kill, got.Output.Stderr.Head)
			}
		})
	}
	calls.Wait()
}
