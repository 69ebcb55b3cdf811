package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/turn"
)

// asking has a tool need an approval.
func asking(tool *catalog.Tool) { tool.Mode = turn.ModeAsk }

// human answers what clients are asked, and remembers it.
type human struct {
	mu     sync.Mutex
	asked  []*mcpsdk.ElicitParams
	answer func(*mcpsdk.ElicitParams) *mcpsdk.ElicitResult
}

func (h *human) options() *mcpsdk.ClientOptions {
	return &mcpsdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
		h.mu.Lock()
		h.asked = append(h.asked, r.Params)
		h.mu.Unlock()
		return h.answer(r.Params), nil
	}}
}

func (h *human) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

func says(action string, content map[string]any) *human {
	return &human{answer: func(*mcpsdk.ElicitParams) *mcpsdk.ElicitResult {
		return &mcpsdk.ElicitResult{Action: action, Content: content}
	}}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		for action, want := range map[string]api.Status{"accept": api.StatusOK, "decline": api.StatusDenied, "cancel": api.StatusDenied} {
			h := says(action, nil)
			c := connect(t, newServer(t, setup{}), k, h.options())
			r := invoke(t, c, params("wipe", arguments{}))
			if own := execution(t, r); own.Status != want || h.times() != 1 || r.IsError != (want != api.StatusOK) {
				t.Errorf("%s: %s, asked %d times: %s", action, own.Status, h.times(), text(r))
			}
			if m := h.asked[0].Message; !strings.Contains(m, "wipe") || !strings.Contains(m, "may touch") {
				t.Errorf("asked %q", m)
			}
		}
	})
}

// What is not a yes is told apart: a human who has denied it, one who has dismissed the question, and a client that fails.
func TestNoAnswerIsNoDenial(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		fails := &mcpsdk.ClientOptions{ElicitationHandler: func(context.Context, *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
			return nil, errors.New("no window")
		}}
		for name, one := range map[string]struct {
			client *mcpsdk.ClientOptions
			reason api.Reason
			says   string
		}{
			"declined":  {says("decline", nil).options(), "user", "a human has denied it"},
			"dismissed": {says("cancel", nil).options(), "dismissed", "dismissed the question"},
			"failed":    {fails, "failed", "asking for one has failed"},
		} {
			if name == "failed" && k.version >= multiRound { // such a client comes back with no answer
				continue
			}
			c := connect(t, newServer(t, setup{}), k, one.client)
			r := invoke(t, c, params("wipe", arguments{}))
			own := execution(t, r)
			if own.Status != api.StatusDenied || own.Reason != one.reason || own.Decider != "modeGate" || !strings.Contains(text(r), one.says) {
				t.Errorf("%s: %s/%s by %s: %s", name, own.Status, own.Reason, own.Decider, text(r))
			}
			if name != "declined" && strings.Contains(text(r), "a human has denied it") {
				t.Errorf("%s: %s", name, text(r))
			}
		}
	})
}

// An approval can be for the session, where there is one; what destroys is asked
// for each time.
func TestApprovalForTheSession(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		h := says("accept", map[string]any{"always": true})
		s := newServer(t, setup{adjust: asking})
		c := connect(t, s, k, h.options())
		for i, tool := range []string{"say", "say", "wipe", "wipe"} {
			if r := invoke(t, c, params(tool, arguments{Text: string(rune('a' + i))})); r.IsError {
				t.Fatal(text(r))
			}
		}
		want := 3
		if k.http && k.version >= multiRound {
			want = 4
		}
		if h.times() != want {
			t.Errorf("asked %d times, want %d", h.times(), want)
		}
	})
}

func TestWithoutElicitation(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		c := connect(t, newServer(t, setup{}), k, nil)
		own := execution(t, invoke(t, c, params("wipe", arguments{})))
		if own.Status != api.StatusDenied || own.Reason != "headless" {
			t.Errorf("%s, %s", own.Status, own.Reason)
		}
	})
}

// asks makes the tool ask this.
func asks(t *testing.T, q plugin.Question) *mcpsdk.CallToolParams {
	t.Helper()
	raw, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return params("ask", arguments{Text: string(raw)})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		for name, one := range map[string]struct {
			question plugin.Question
			content  map[string]any
			want     string
		}{
			"yes or no": {plugin.Question{Prompt: "go on?"}, nil, "answer true"},
			"form": {
				plugin.Question{Prompt: "who?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)},
				map[string]any{"name": "Ada"},
				`answer {"name":"Ada"}`,
			},
			"value": {plugin.Question{Prompt: "how many?", Schema: json.RawMessage(`{"type":"integer"}`)}, map[string]any{"value": 7}, "answer 7"},
			"typed": {
				plugin.Question{Prompt: "which?", Schema: json.RawMessage(`{"type":"array","items":{"type":"string"}}`)},
				map[string]any{"value": `["a"]`},
				`answer ["a"]`,
			},
		} {
			h := says("accept", one.content)
			c := connect(t, newServer(t, setup{}), k, h.options())
			if r := invoke(t, c, asks(t, one.question)); r.IsError || text(r) != one.want || h.times() != 1 {
				t.Errorf("%s: %s, asked %d times", name, text(r), h.times())
			}
		}
	})
}

// A client may be asked for no secret, and nobody sees one.
func TestNoSecretsByForm(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		h := says("accept", map[string]any{"value": "s3cret"})
		c := connect(t, newServer(t, setup{}), k, h.options())
		r := invoke(t, c, asks(t, plugin.Question{Prompt: "password?", Schema: json.RawMessage(`{"type":"string"}`), Secret: true}))
		if !r.IsError || h.times() != 0 || !strings.Contains(text(r), "configure it under secrets") {
			t.Errorf("asked %d times: %s", h.times(), text(r))
		}
	})
}

// A human who takes longer than the client waits is a no, told in time.
func TestHumanIsTooSlow(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	stop := make(chan struct{})
	h := &human{answer: func(*mcpsdk.ElicitParams) *mcpsdk.ElicitResult {
		<-stop
		return &mcpsdk.ElicitResult{Action: "accept"}
	}}
	c := connect(t, newServer(t, setup{Config: Config{Timeout: ends(time.Second)}}), k, h.options())
	t.Cleanup(func() { close(stop) })
	r := invoke(t, c, params("wipe", arguments{}))
	own := execution(t, r)
	if own.Status != api.StatusDenied || own.Reason != "timeout" || !strings.Contains(text(r), "clientTimeout") {
		t.Errorf("%s, %s: %s", own.Status, own.Reason, text(r))
	}
}

// From 2026-07-28 on a request that comes back finds its call, however often it
// does, and begins none.
func TestComingBackTwice(t *testing.T) {
	s := newServer(t, setup{})
	for _, k := range []kind{kinds[1], kinds[3]} {
		c := connect(t, s, k, &mcpsdk.ClientOptions{
			ElicitationHandler: says("accept", nil).options().ElicitationHandler,
			MultiRoundTrip:     &mcpsdk.MultiRoundTripOptions{Disabled: true},
		})
		first := invoke(t, c, params("wipe", arguments{}))
		other := params("wipe", arguments{Text: "other"})
		other.RequestState = first.RequestState
		if _, err := c.CallTool(wait.Context(t), other); err == nil || !strings.Contains(err.Error(), "other arguments: come back") {
			t.Errorf("other arguments with the same state: %v", err)
		}
		if len(first.InputRequests) != 1 || first.RequestState == "" {
			t.Fatalf("%+v", first)
		}
		again := params("wipe", arguments{})
		again.RequestState, again.InputResponses = first.RequestState, mcpsdk.InputResponseMap{}
		for id := range first.InputRequests {
			again.InputResponses[id] = &mcpsdk.ElicitResult{Action: "accept"}
		}
		var calls []string
		for range 2 {
			r := invoke(t, c, again)
			own := execution(t, r)
			if own.Status != api.StatusOK {
				t.Fatal(text(r))
			}
			calls = append(calls, own.CallID)
		}
		if calls[0] != calls[1] {
			t.Errorf("calls %q", calls)
		}
		again.Name = "say"
		if _, err := c.CallTool(wait.Context(t), again); err == nil || !strings.Contains(err.Error(), "invalid requestState") {
			t.Errorf("another tool with the same state: %v", err)
		}
	}
}

// Without an answer the client is asked again, and the call goes on to wait: each state of a
// question leads to it, however often a client comes back, and no other text does.
func TestComingBackWithoutAnswer(t *testing.T) {
	c := connect(t, newServer(t, setup{}), kinds[1], &mcpsdk.ClientOptions{
		ElicitationHandler: says("accept", nil).options().ElicitationHandler,
		MultiRoundTrip:     &mcpsdk.MultiRoundTripOptions{Disabled: true},
	})
	p := params("wipe", arguments{})
	first := invoke(t, c, p)
	p.RequestState = first.RequestState
	for range 4 {
		if again := invoke(t, c, p); len(again.InputRequests) != 1 || again.RequestState == first.RequestState {
			t.Errorf("%+v", again)
		}
	}
	for _, other := range []string{"9", "x", "-1", "+1", "01", ""} {
		p.RequestState = strings.TrimSuffix(first.RequestState, "1") + other
		if _, err := c.CallTool(wait.Context(t), p); err == nil || !strings.Contains(err.Error(), "invalid requestState") {
			t.Errorf("%q: %v", p.RequestState, err)
		}
	}
	p.RequestState, p.InputResponses = first.RequestState, mcpsdk.InputResponseMap{}
	for key := range first.InputRequests {
		p.InputResponses[key] = &mcpsdk.ElicitResult{Action: "accept"}
	}
	if r := invoke(t, c, p); execution(t, r).Status != api.StatusOK {
		t.Errorf("accepted by the first state: %s", text(r))
	}
}
