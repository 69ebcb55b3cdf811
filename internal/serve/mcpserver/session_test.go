package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// A gate keeps the order, the number and the exclusive ones alone.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{most: 2}
		var mu sync.Mutex
		running, most, crowded := 0, 0, false
		var order []int
		var all sync.WaitGroup
		for i, exclusive := range []bool{false, false, false, true, false, true} {
			synctest.Wait() // so that each comes after the one before
			all.Go(func() {
				leave, err := g.enter(t.Context(), nil, exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				running++
				most, crowded = max(most, running), crowded || exclusive && running > 1
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				leave()
			})
		}
		all.Wait()
		if most != 2 || crowded || order[2] != 2 || order[3] != 3 || order[4] != 4 || order[5] != 5 {
			t.Errorf("at most %d ran, an exclusive one with others: %v, order %v", most, crowded, order)
		}
	})
}

func TestGateGivesUp(t *testing.T) {
	g := &gate{most: 1}
	leave, err := g.enter(t.Context(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(ctx, nil, false); err == nil {
		t.Error("it was let in beside an exclusive one")
	}
	leave()
	if leave, err = g.enter(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	leave()
}

func TestGateIsBounded(t *testing.T) {
	g := &gate{most: 1, inside: []*waiter{{exclusive: true}}, waiting: make([]*waiter, maxWaiting)}
	if _, err := g.enter(t.Context(), nil, false); err != errFull {
		t.Error(err)
	}
}

func TestRepeats(t *testing.T) {
	s := (&Server{}).newSession("id", Peer{})
	now := time.Now()
	for i, c := range []struct {
		tool, arguments string
		after           time.Duration
		want            int
	}{
		{"a", `{"x": 1}`, time.Second, 0},
		{"a", `{"x": 1}`, time.Second, 1},
		{"a", `{"x":1}`, time.Second, 2}, // other spaces
		{"b", `{"x":1}`, time.Second, 0},
		{"a", `{"x":1}`, time.Second, 0},
		{"a", `{"x":1}`, time.Second, 1},
		{"a", `{"x":1}`, 2 * pause, 0},
		{"a", `{"x":2}`, time.Second, 0},
	} {
		now = now.Add(c.after)
		if got := s.count(turn.Call{Tool: c.tool, Arguments: json.RawMessage(c.arguments)}, now); got != c.want {
			t.Errorf("call %d was made %d times before, want %d", i, got, c.want)
		}
	}
}

func TestRepeatIsRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t, setup{}), kinds[0], nil)
	var last string
	for i := range 5 { // as in a turn
		r := invoke(t, c, params("say", arguments{Text: "again"}))
		last = text(r)
		if own := execution(t, r); (own.Status == api.StatusDenied) != (i == 4) {
			t.Fatalf("%d: %s", i, last)
		}
		if execution(t, r).TurnID == "" {
			t.Errorf("%d is in no turn, and so in no journal", i)
		}
		if i == 2 && !strings.Contains(last, "[NOTE] this is the same call") {
			t.Errorf("%d: %s", i, last)
		}
	}
	if !strings.HasPrefix(last, "[DENIED]") {
		t.Error(last)
	}
}

// The cap on a turn's calls is none on a session's.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	c := connect(t, s, kinds[0], nil)
	const calls = 60
	for i := range calls {
		if r := invoke(t, c, params("say", arguments{Text: strings.Repeat("x", i)})); r.IsError {
			t.Fatalf("call %d: %s", i, text(r))
		}
	}
	status := invoke(t, c, params("session_status", arguments{})).StructuredContent.(map[string]any)
	if status["callCount"] != float64(calls) || status["callsLeft"] != nil || status["toolTimeMs"].(float64) <= 0 {
		t.Errorf("%v", status)
	}
}

// What a tool promises and does not give costs nobody its content.
func TestBrokenPromise(t *testing.T) {
	r := supervisor.Verdict{Status: api.StatusOK, Tool: "x"}.Result()
	r.Content = []api.Content{{Type: "text", Text: "words"}}
	if out := present(r, outputCheck{declared: true}, newest, nil); !out.IsError || !strings.Contains(text(out), "words") || !strings.Contains(text(out), "[NOTE]") {
		t.Errorf("%+v", out)
	}
}

// A structured result that its schema forbids is no better than none: the
// TypeScript client throws both away. The receipt keeps it.
func TestStructuredResultAgainstItsSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"v":{"type":"number"}},"required":["v"],"additionalProperties":false}`)
	for structured, fits := range map[string]bool{`{"v":1}`: true, `{"v":"x"}`: false, `{}`: false, `{"v":1,"w":2}`: false, `[1]`: false} {
		r := supervisor.Verdict{Status: api.StatusOK, Tool: "x"}.Result()
		r.Content = []api.Content{{Type: "text", Text: "words"}}
		r.Structured = json.RawMessage(structured)
		out := present(r, newOutputCheck(schema), newest, nil)
		if out.IsError == fits || (out.StructuredContent != nil) != fits || !strings.HasPrefix(text(out), "words") {
			t.Errorf("%s: %+v, %q", structured, out, text(out))
		}
		if own := execution(t, out); own.Status != api.StatusOK || (string(own.Structured) == structured) == fits {
			t.Errorf("%s: the receipt has %s", structured, own.Structured)
		}
		if note := strings.Contains(text(out), "[NOTE] the tool"); note == fits || strings.Count(text(out), "[NOTE]") > 1 {
			t.Errorf("%s: %q", structured, text(out))
		}
	}
	r := supervisor.Verdict{Status: api.StatusOK, Tool: "x"}.Result()
	r.Structured = json.RawMessage(`{"v":1}`)
	if out := present(r, newOutputCheck(schema), newest, nil); text(out) != `{"v":1}` {
		t.Errorf("without content: %q", text(out))
	}
	if p := newOutputCheck(json.RawMessage(`{"type":"object","$ref":"https://example.org/"}`)); !p.declared || p.breach(json.RawMessage(`{"v":1}`)) != "" {
		t.Error("a schema that cannot be checked is held against a result")
	}
}

// Where the model's text is cut, it says how much is missing in all.
func TestCutResult(t *testing.T) {
	r := supervisor.Verdict{Status: api.StatusOK, Tool: "x"}.Result()
	half := strings.Repeat("y", 1<<19)
	r.Content = []api.Content{{Type: "text", Text: half}, {Type: "text", Text: "[gap]", LeftOutBytes: 1_000_000}, {Type: "text", Text: half}}
	out := present(r, outputCheck{}, newest, nil)
	shown := strings.Count(text(out), "y") - strings.Count("bytes", "y")
	if want := fmt.Sprintf("[... %d bytes left out ...]", 1_000_000+2*len(half)-shown); !strings.Contains(text(out), want) {
		t.Errorf("want %s", want)
	}
}

// What the SDK would panic over is left out, and says so.
func TestUnacceptableTools(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"array"}`: "not of type object",
		`not json`:         "not of type object",
		`{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}`: "cannot be offered",
	} {
		s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Description.InputSchema = []byte(schema)
			}
		}})
		problems := s.Reload(t.Context())
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%s: %v", schema, problems)
		}
	}
}

// A problem that stays is logged when it comes, and not with each list.
func TestProblemsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, setup{
		adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Description.InputSchema = []byte("not json")
			}
		},
		Config: Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})},
	})
	<-s.loaded
	for range 3 {
		s.Reload(t.Context())
	}
	if n := strings.Count(log.String(), "not all tools are offered"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
}
