package toolrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

// TestMain lets the test binary play the tool.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "do", Description: "Does it.\nOften."}, do))
		return
	}
	goleak.VerifyTestMain(m)
}

type input struct {
	What string `json:"what"`
}

type output struct {
	Done bool `json:"done"`
}

func do(ctx context.Context, in input, out *plugin.Output) (output, error) {
	switch in.What {
	case "all":
		fmt.Println("printed\x1b[31m")
		fmt.Fprintln(os.Stderr, "complained")
		return output{true}, errors.Join(out.Text("half"), out.Progress(0.5, "half\nway"), out.Text(" line\x1b[2J"), out.JSON(1),
			out.Blob("image/png", []byte("xyz")), out.Blob("a\nb", nil), out.Link("file:///x", "x", ""), out.Log("noted"))
	case "panic":
		panic("kaboom")
	case "ask":
		answer, err := out.Ask(ctx, plugin.Question{Prompt: "Sure?"})
		return output{string(answer) == `"yes"`}, err
	case "wait":
		_ = out.Text("waiting")
		<-ctx.Done()
		return output{}, context.Cause(ctx)
	}
	return output{}, errors.New("what?")
}

func newHost(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return host
}

// shown is what one call shows.
func shown(t *testing.T, host *supervisor.Supervisor, what string, o Options) (out, notes string, r *api.Result, aborted bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	o.Err = &stderr
	if o.Out == nil {
		o.Out = &stdout
	}
	request := supervisor.Request{
		Tool: supervisor.Tool{Path: self}, Arguments: json.RawMessage(`{"what":"` + what + `"}`), Sandbox: &supervisor.Policy{Tier: "none"},
	}
	r, aborted, err = Call(t.Context(), host, request, o)
	if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), r, aborted
}

func TestEverythingIsShown(t *testing.T) {
	host := newHost(t)
	out, notes, r, aborted := shown(t, host, "all", Options{})
	if want := "half line\x1b[2J\n1\n[image/png, 3B]\n[a\\nb, 0B]\n[x file:///x]\n{\n  \"done\": true\n}\n"; out != want || !r.OK() || aborted {
		t.Errorf("out %q, want %q; %s", out, want, r.Message)
	}
	for _, want := range []string{
		`  arguments {"what":"all"}`, "  sandbox   none: ", `  progress   50% half\nway`, "  log       noted",
		`  stdout    printed\x1b[31m`, "  stderr    complained", "  timing    start ", "ok: do, ",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	out, _, _, _ = shown(t, host, "all", Options{People: true})
	if !strings.HasPrefix(out, "half\n line\\x1b[2J\n1\n") {
		t.Errorf("for people: %q", out)
	}
}

func TestFailuresAreShown(t *testing.T) {
	host := newHost(t)
	_, notes, r, _ := shown(t, host, "panic", Options{})
	if r.OK() || !strings.Contains(notes, "  stack     goroutine") || !strings.Contains(notes, "kaboom") {
		t.Errorf("%s:\n%s", r.Status, notes)
	}
	out, notes, r, _ := shown(t, host, "nothing", Options{JSON: true})
	if r.OK() || notes != "" || !json.Valid([]byte(out)) || !strings.Contains(out, `"status":"tool_error"`) {
		t.Errorf("JSON: %q, %q", out, notes)
	}
}

func TestAnswersAreGivenInOrder(t *testing.T) {
	host := newHost(t)
	if out, _, r, _ := shown(t, host, "ask", Options{Answers: []json.RawMessage{json.RawMessage(`"yes"`)}}); !r.OK() || !strings.Contains(out, "true") {
		t.Errorf("%s: %q", r.Status, out)
	}
	if _, _, r, _ := shown(t, host, "ask", Options{}); r.OK() || !strings.Contains(r.ToolError.Message, "headless") {
		t.Errorf("without one: %+v", r.ToolError)
	}
}

// onFirst tells of the first write.
type onFirst struct {
	once sync.Once
	tell func()
}

func (w *onFirst) Write(p []byte) (int, error) {
	w.once.Do(w.tell)
	return len(p), nil
}

func TestASignalAborts(t *testing.T) {
	signals := make(chan os.Signal, 1)
	_, _, r, aborted := shown(t, newHost(t), "wait", Options{Signals: signals, Out: &onFirst{tell: func() { signals <- os.Interrupt }}})
	if !aborted || r.Status != api.StatusCancelled {
		t.Errorf("aborted %v, %s", aborted, r.Status)
	}
}

// A reader who has gone costs the call nothing, and is told of.
func TestOutputThatCannotBeWritten(t *testing.T) {
	self, _ := os.Executable()
	r, _, err := Call(t.Context(), newHost(t), supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: json.RawMessage(`{"what":"all"}`)},
		Options{Out: gone{}, Err: &bytes.Buffer{}})
	if !errors.Is(err, syscall.EPIPE) || !r.OK() {
		t.Errorf("%v, %s", err, r.Status)
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestDescription(t *testing.T) {
	self, _ := os.Executable()
	d, failed := newHost(t).Describe(t.Context(), supervisor.Request{Tool: supervisor.Tool{Path: self}})
	if failed != nil {
		t.Fatal(failed.Message)
	}
	var text, raw strings.Builder
	described := NewDescription("./do", d)
	if err := errors.Join(described.WriteText(&text), described.WriteJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"./do  version ", "\n\ndo\n  Does it.\n  Often.\n  arguments:\n    what  string  required  \n  result:\n    done  boolean  required  \n  claims: none\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	var back Description
	if err := json.Unmarshal([]byte(raw.String()), &back); err != nil || len(back.Tools) != 1 || back.Tools[0].Name != "do" || back.SHA256 != d.SHA256 {
		t.Errorf("%v: %s", err, raw.String())
	}
}

func TestSchemasWithoutNames(t *testing.T) {
	for schema, want := range map[string]string{
		``: "none", `{"type":"object"}`: "none", `{"type":"object","additionalProperties":false}`: "none",
		`{"type":"array","items":{"type":"string"}}`: "array", `{"type":["null","object"],"additionalProperties":{"type":"integer"}}`: "any names", `{}`: "any", `true`: "any",
	} {
		var b strings.Builder
		schemaText(&b, "result", json.RawMessage(schema))
		if b.String() != "  result: "+want+"\n" {
			t.Errorf("%s: %q", schema, b.String())
		}
	}
}

func TestWarningsOfADescription(t *testing.T) {
	var text, raw strings.Builder
	described := NewDescription("./do", &supervisor.Description{Warnings: []string{"its title\x1b is cut", "its hint, too"}})
	if err := errors.Join(described.WriteText(&text), described.WriteJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nwarning: its title\\x1b is cut\nwarning: its hint, too\n") || !strings.Contains(raw.String(), `"its hint, too"`) {
		t.Errorf("%s%s", text.String(), raw.String())
	}
}

func TestHintsAndWishes(t *testing.T) {
	tool := Tool{
		Name: "x\x1b", Title: "An X", ReadOnly: new(true), Destructive: new(false), Exclusive: true, InputSchema: json.RawMessage(`{"required":["n"],"properties":{"a":true,"n":{"type":"integer","description":"how many"}}}`),
		TimeoutMs: 90_000, TimeoutArgument: "ms", Wish: Wish{Read: []string{"~/x"}, Write: []string{"/y"}, Network: true, MemoryBytes: 1 << 30, Pids: 9},
	}
	var b strings.Builder
	tool.text(&b)
	want := "\nx\\x1b  (An X)\n  arguments:\n    a  any      optional  \n    n  integer  required  how many\n  result: none\n  claims: read-only, additive, exclusive\n  hints: timeout 1m30s, timeout argument ms\n  wishes for: read ~/x, write /y, network, memory 1GiB, 9 processes\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestWatch(t *testing.T) {
	path := t.TempDir() + "/tool"
	build := func(content string, mode os.FileMode) {
		t.Helper()
		temporary := path + ".new"
		if err := errors.Join(os.WriteFile(temporary, []byte(content), mode), os.Rename(temporary, path)); err != nil {
			t.Fatal(err)
		}
	}
	build("one", 0o755)
	w := Watch(path)
	found := make(chan bool)
	stop := make(chan os.Signal)
	next := func() { found <- w.Next(stop) }
	go next()
	build("two, which cannot be run", 0o644)
	build("", 0o755)
	build("three", 0o755)
	if !<-found || w.seen.bytes != int64(len("three")) {
		t.Fatalf("found %+v", w.seen)
	}
	go next()
	stop <- os.Interrupt
	if <-found {
		t.Error("it goes on after a signal")
	}
}
