package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/turn"
)

// trail keeps what happens.
type trail struct {
	mu     sync.Mutex
	events []api.Event
}

func (l *trail) Append(records ...turn.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.events = append(l.events, r.Event)
	}
	return nil
}

func (l *trail) of(kind api.EventKind) []api.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.events), func(e api.Event) bool { return e.Kind != kind })
}

// withRequests are the kinds of clients that are asked while their request waits.
func withRequests(t *testing.T, test func(t *testing.T, k kind, elsewhere bool)) {
	ofEachKind(t, func(t *testing.T, k kind) {
		if k.version >= multiRound {
			t.Skip("its requests do not wait for humans")
		}
		for _, elsewhere := range []bool{false, true} {
			test(t, k, elsewhere)
		}
	})
}

// Nobody answers: that is a denial, on record as one, and nothing is aborted.
func TestUnansweredApproval(t *testing.T) {
	t.Parallel()
	withRequests(t, func(t *testing.T, k kind, elsewhere bool) {
		for tool, asked := range map[string]api.InteractionKind{"wipe": api.KindConfirm, "say": api.KindApproval} {
			l := &trail{}
			s := newServer(t, setup{Config: Config{Timeout: ends(2 * time.Second), OthersAnswer: elsewhere}, adjust: asking, journal: l})
			r := invoke(t, connect(t, s, k, silent(t, k)), params(tool, arguments{}))
			own := execution(t, r)
			if own.Status != api.StatusDenied || own.Reason != "timeout" || own.Decider != "modeGate" {
				t.Errorf("%s: %s/%s by %s", tool, own.Status, own.Reason, own.Decider)
			}
			if s := text(r); !strings.HasPrefix(s, "[DENIED]") || !strings.Contains(s, "mcp: clientTimeout") {
				t.Errorf("%s: the model is told %q", tool, s)
			}
			denied, over := l.of(api.AuditDenied), l.of(api.AuditTimedOut)
			if len(denied) != 1 || denied[0].Reason != "timeout" || denied[0].Decider != "modeGate" || len(over) != 1 || over[0].Interaction != asked {
				t.Errorf("%s: on record are %+v, %+v", tool, denied, over)
			}
			if aborts := l.of(api.EventTurnAbort); len(aborts) != 0 {
				t.Errorf("%s: it was aborted: %+v", tool, aborts)
			}
			if asked := l.of(api.EventInteractionRequest); len(asked) != 1 || asked[0].TimeoutMs <= 0 || asked[0].TimeoutMs >= 1000 {
				t.Errorf("%s: asked with %+v", tool, asked)
			}
		}
	})
}

// A tool's own question that nobody answers comes back to the tool in time for it
// to end by itself.
func TestUnansweredQuestion(t *testing.T) {
	t.Parallel()
	withRequests(t, func(t *testing.T, k kind, elsewhere bool) {
		l := &trail{}
		s := newServer(t, setup{Config: Config{Timeout: ends(18 * time.Second), OthersAnswer: elsewhere}, journal: l})
		r := invoke(t, connect(t, s, k, silent(t, k)), asks(t, plugin.Question{Prompt: "go on?"}))
		own := execution(t, r)
		if own.Status != api.StatusToolError || len(l.of(api.AuditTimedOut)) != 1 || !strings.Contains(text(r), "denied: timeout") {
			t.Errorf("%s/%s, on record %+v: %s", own.Status, own.Reason, l.of(api.AuditTimedOut), text(r))
		}
	})
}

// A client that answers with an error has failed to ask, at once, also where others
// could have answered.
func TestAnErrorEndsTheWait(t *testing.T) {
	t.Parallel()
	fails := &mcpsdk.ClientOptions{ElicitationHandler: func(context.Context, *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
		return nil, errors.New("no window")
	}}
	misfit := says("accept", map[string]any{"always": "perhaps"}).options()
	withRequests(t, func(t *testing.T, k kind, elsewhere bool) {
		for name, o := range map[string]*mcpsdk.ClientOptions{"error": fails, "misfit": misfit} {
			s := newServer(t, setup{Config: Config{Timeout: ends(20 * time.Second), OthersAnswer: elsewhere}, adjust: asking})
			r := invoke(t, connect(t, s, k, o), params("say", arguments{}))
			own := execution(t, r)
			if own.Status != api.StatusDenied || own.Reason != "failed" || own.Decider != "modeGate" || own.Timing.HumanWaitMs >= 10_000 {
				t.Errorf("%s: %s/%s by %s after %d ms: %s", name, own.Status, own.Reason, own.Decider, own.Timing.HumanWaitMs, text(r))
			}
		}
	})
}

// An answer that is of another kind than what was asked does not fit: from clients that
// answer by coming back it is a failure once they were asked again often enough.
func TestAnotherAnswerEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kinds[1], kinds[3]} {
		c := connect(t, newServer(t, setup{}), k, silent(t, k))
		r := invoke(t, c, params("wipe", arguments{}))
		for range maxAgain + 1 {
			p := params("wipe", arguments{})
			p.RequestState, p.InputResponses = r.RequestState, mcpsdk.InputResponseMap{}
			for id := range r.InputRequests {
				//lint:ignore SA1019 it is what a client may still send
				p.InputResponses[id] = &mcpsdk.ListRootsResult{Roots: []*mcpsdk.Root{}}
			}
			r = invoke(t, c, p)
		}
		if own := execution(t, r); own.Status != api.StatusDenied || own.Reason != "failed" {
			t.Errorf("%s: %s/%s", k.name, own.Status, own.Reason)
		}
	}
}

// What a server asks of a client that has it not, the model reads once; roots are no
// matter, for the server gets those that are granted.
func TestWhatAClientHasNotIsNotedOnce(t *testing.T) {
	c := &call{s: &Server{}, session: &session{}, groups: map[string]int{}, asked: make(chan struct{}, 1)}
	for range 2 {
		for _, kind := range []api.InteractionKind{api.KindRoots, api.KindSampling} {
			if a, err := c.askClient(t.Context(), api.Interaction{Kind: kind, Request: &api.ClientRequest{}}); err != nil || a.Unanswered != api.OutcomeFailed {
				t.Errorf("%s: %+v, %v", kind, a, err)
			}
		}
	}
	if len(c.notes) != 1 || !strings.Contains(c.notes[0], "its model (sampling)") {
		t.Errorf("%q", c.notes)
	}
}

// A client that refuses a server's own request by an error: the server gets that error.
func TestARefusalIsTheClients(t *testing.T) {
	t.Parallel()
	//lint:ignore SA1019 clients may still have a model
	o := &mcpsdk.ClientOptions{CreateMessageHandler: func(context.Context, *mcpsdk.CreateMessageRequest) (*mcpsdk.CreateMessageResult, error) {
		return nil, &jsonrpc.Error{Code: -1, Message: "User rejected sampling request"}
	}}
	for _, k := range []kind{kinds[0], kinds[2]} {
		q := plugin.Question{Requests: map[string]plugin.ClientRequest{"k": {
			Method: "sampling/createMessage", Params: json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}`),
		}}}
		r := invoke(t, connect(t, newServer(t, setup{}), k, o), asks(t, q))
		if want := `answer {"k":{"dev.toolhost/refused":{"code":-1,"message":"User rejected sampling request"}}}`; !strings.Contains(text(r), want) {
			t.Errorf("%s: %s", k.name, text(r))
		}
	}
}
