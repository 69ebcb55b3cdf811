package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/plugin/rpc"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// versioned has a version, which a test binary has not.
type versioned struct{ fixed }

func (v versioned) Tools(context.Context) (Listing, error) {
	return Listing{Version: "v1.2.3", Tools: v.fixed}, nil
}

func TestDescribeListsEveryTool(t *testing.T) {
	a, b := NewTool(Tool{Name: "a"}, search), NewTool(Tool{Name: "b"}, search)
	s := newServer(versioned{fixed{a, b}})
	got, err := s.Describe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetVersion() != "v1.2.3" || len(got.GetTools()) != 2 ||
		got.GetTools()[0] != a.Describe() || got.GetTools()[1] != b.Describe() {
		t.Errorf("described %v", got)
	}
}

// A tool knows where its call stands.
func TestACallKnowsItsPlace(t *testing.T) {
	var got Place
	x := tool("x", func(ctx context.Context, _ *Output) error {
		got = PlaceOf(ctx)
		return nil
	})
	at := &pluginv1.Place{CallId: "c", TurnId: "t", SessionId: "s", AgentId: "a", ParentTurnId: "p", Depth: 2}
	startCall(t, testServer(x), &pluginv1.CallRequest{CallId: "1", Tool: "x", TimeoutNs: int64(time.Hour), Meta: []byte(`{"k":1}`), Place: at}).result(t)
	want := Place{CallID: "c", TurnID: "t", SessionID: "s", AgentID: "a", ParentTurnID: "p", Depth: 2, Meta: []byte(`{"k":1}`)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if none := PlaceOf(t.Context()); !reflect.DeepEqual(none, Place{}) {
		t.Errorf("of no call: %+v", none)
	}
}

func TestCallOfAnUnknownTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(NewTool(Tool{Name: "search"}, search))
		c := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "Search"})
		<-c.done
		if rpc.StatusOf(c.err).Code != codes.NotFound || !strings.Contains(c.err.Error(), `"Search"`) || len(c.stream.all()) != 0 {
			t.Errorf("error %v after %v", c.err, c.stream.all())
		}
	})
}

func TestCallStreamsThenReturnsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late *Output
		x := NewTool(Tool{Name: "x"}, func(_ context.Context, q query, out *Output) (summary, error) {
			late = out
			return summary{Hits: q.Limit}, out.Text("before")
		})
		c := startCall(t, testServer(x), &pluginv1.CallRequest{CallId: "1", Tool: "x", Arguments: []byte(`{"limit":5}`)})
		result := c.result(t)
		if string(result.GetStructured()) != `{"hits":5}` || result.GetError() != nil || result.GetExit() != nil {
			t.Errorf("result %v", result)
		}
		if n := len(c.stream.all()); n != 2 {
			t.Errorf("%d events, want text and result", n)
		}
		if err := late.Text("late"); !errors.Is(err, errEnded) {
			t.Errorf("text after the end: %v", err)
		}
	})
}

func TestACallIDIsTakenWhileItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		s := testServer(waiter(ended))
		request := &pluginv1.CallRequest{CallId: "1", Tool: "wait", TimeoutNs: int64(time.Minute)}
		first := startCall(t, s, request)
		synctest.Wait()
		second := startCall(t, s, request)
		<-second.done
		if rpc.StatusOf(second.err).Code != codes.AlreadyExists {
			t.Errorf("second call: %v", second.err)
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatal("the refused call ended the running one")
		}
		first.result(t)
		startCall(t, s, request).result(t) // the id is free again
		if len(s.calls) != 0 {
			t.Errorf("calls left: %v", s.calls)
		}
	})
}

func TestCancelEndsOneCallWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		s := testServer(waiter(ended))
		first := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "wait"})
		second := startCall(t, s, &pluginv1.CallRequest{CallId: "2", Tool: "wait"})
		synctest.Wait()
		for _, id := range []string{"3", "1", "1"} {
			if _, err := s.Cancel(t.Context(), &pluginv1.CancelRequest{CallId: id, Reason: "user pressed stop"}); err != nil {
				t.Errorf("cancel of %s: %v", id, err)
			}
		}
		first.result(t)
		if err := <-ended; !errors.Is(err, ErrCancelled) || !strings.Contains(err.Error(), "user pressed stop") {
			t.Errorf("cause %v", err)
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("the other call ended too")
		}
		if _, err := s.Cancel(t.Context(), &pluginv1.CancelRequest{CallId: "2"}); err != nil {
			t.Error(err)
		}
		second.result(t)
	})
}

func TestTheDeadlineIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, began := make(chan error, 1), time.Now()
		c := startCall(t, testServer(waiter(ended)), &pluginv1.CallRequest{Tool: "wait", TimeoutNs: int64(3 * time.Second)})
		c.result(t)
		if err := <-ended; !errors.Is(err, ErrDeadline) {
			t.Errorf("cause %v", err)
		}
		if passed := time.Since(began); passed != 3*time.Second {
			t.Errorf("after %v", passed)
		}
	})
}

func TestNoTimeoutIsNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := tool("x", func(ctx context.Context, _ *Output) error {
			if deadline, ok := ctx.Deadline(); ok {
				t.Errorf("deadline %v", deadline)
			}
			return ctx.Err()
		})
		if e := startCall(t, testServer(x), &pluginv1.CallRequest{Tool: "x"}).result(t).GetError(); e != nil {
			t.Error(e)
		}
	})
}

func TestALostHostEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		c := startCall(t, testServer(waiter(ended)), &pluginv1.CallRequest{Tool: "wait"})
		synctest.Wait()
		c.hangUp()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrCancelled) {
			t.Errorf("cause %v", err)
		}
		<-c.done
	})
}

func TestACallsContextEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		x := tool("x", func(ctx context.Context, _ *Output) error {
			kept = ctx
			return nil
		})
		stream := &fakeStream{ctx: t.Context()}
		if err := testServer(x).Call(&pluginv1.CallRequest{Tool: "x", TimeoutNs: int64(time.Hour)}, stream); err != nil {
			t.Fatal(err)
		}
		if kept.Err() == nil {
			t.Error("still alive")
		}
	})
}

func TestSIGTERMEndsRunningAndLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 3)
		s := testServer(waiter(ended))
		signals := make(chan os.Signal)
		defer close(signals)
		go s.terminateOn(signals)
		running := []*call{
			startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "wait"}),
			startCall(t, s, &pluginv1.CallRequest{CallId: "2", Tool: "wait", TimeoutNs: int64(time.Hour)}),
		}
		synctest.Wait()
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM
		for _, c := range running {
			c.result(t)
		}
		startCall(t, s, &pluginv1.CallRequest{CallId: "3", Tool: "wait", TimeoutNs: int64(time.Hour)}).result(t)
		for range 3 {
			if err := <-ended; !errors.Is(err, ErrTerminated) {
				t.Errorf("cause %v", err)
			}
		}
	})
}

// SIGTERM and the host's reason come together, in either order.
func TestTheHostsReasonCounts(t *testing.T) {
	for reason, want := range map[string]error{"deadline": ErrDeadline, "user": ErrCancelled} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := testServer(waiter(ended))
			c := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "wait"})
			synctest.Wait()
			s.terminate()
			if _, err := s.Cancel(t.Context(), &pluginv1.CancelRequest{CallId: "1", Reason: reason}); err != nil {
				t.Fatal(err)
			}
			c.result(t)
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("%s: cause %v", reason, err)
			}
			time.Sleep(time.Second) // a late ErrTerminated changes nothing
		})
	}
}

func explode(context.Context, *Output) error { panic("kaboom \xff") }

func TestAPanicIsAResultAndCostsNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(tool("bad", explode), NewTool(Tool{Name: "search"}, search))
		c := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "bad"})
		e := c.result(t).GetError()
		if e.GetKind() != pluginv1.ToolError_KIND_PANIC || e.GetMessage() != "panic: kaboom \uFFFD" {
			t.Errorf("error %v", e)
		}
		if !strings.Contains(e.GetStack(), "plugin.explode") {
			t.Errorf("the stack does not show the tool: %s", e.GetStack())
		}
		if r := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "search"}).result(t); r.GetError() != nil {
			t.Errorf("next call: %v", r)
		}
	})
}

func TestKindsOfError(t *testing.T) {
	alive := t.Context()
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w: by the user", ErrCancelled))
	late, release := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Hour), ErrDeadline)
	defer release()
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		want pluginv1.ToolError_Kind
	}{
		{"plain", alive, errors.New("x"), pluginv1.ToolError_KIND_ERROR},
		{"arguments", alive, fmt.Errorf("x: %w", &InvalidArgumentsError{errors.New("y")}), pluginv1.ToolError_KIND_INVALID_ARGUMENTS},
		{"someone else's context", alive, context.Canceled, pluginv1.ToolError_KIND_ERROR},
		{"plain after a cancel", cancelled, errors.New("x"), pluginv1.ToolError_KIND_ERROR},
		{"the cause of a cancel", cancelled, fmt.Errorf("x: %w", context.Cause(cancelled)), pluginv1.ToolError_KIND_CANCELLED},
		{"the context's error", cancelled, fmt.Errorf("x: %w", context.Canceled), pluginv1.ToolError_KIND_CANCELLED},
		{"the deadline's cause", late, ErrDeadline, pluginv1.ToolError_KIND_CANCELLED},
		{"the deadline's error", late, context.DeadlineExceeded, pluginv1.ToolError_KIND_CANCELLED},
		{"an inner cancel after the deadline", late, context.Canceled, pluginv1.ToolError_KIND_ERROR},
	} {
		x := tool("x", func(context.Context, *Output) error { return test.err })
		e := runTool(test.ctx, x, nil, nil).GetError()
		if e.GetKind() != test.want || e.GetMessage() != test.err.Error() || e.GetStack() != "" {
			t.Errorf("%s: %v, want %v", test.name, e, test.want)
		}
	}
}

func TestErrorTextIsMadePrintable(t *testing.T) {
	x := tool("x", func(context.Context, *Output) error { return errors.New("no \xff") })
	if e := runTool(t.Context(), x, nil, nil).GetError(); e.GetMessage() != "no \uFFFD" {
		t.Errorf("message %q", e.GetMessage())
	}
}

// A call whose result cannot be sent has an error as its result, and what came before it.
func TestResultsThatCannotBeSent(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	text := func(s string) *pluginv1.Content {
		return &pluginv1.Content{Content: &pluginv1.Content_Text{Text: s}}
	}
	link := &pluginv1.Content{Content: &pluginv1.Content_Link{Link: &pluginv1.ResourceLink{Uri: "\xff"}}}
	for _, test := range []struct {
		name  string
		do    func(*Output) error
		text  string // of what it sends before
		error string
	}{
		{"long content", func(out *Output) error { return out.WithResult([]*pluginv1.Content{text(long)}) }, long, ""},
		{"long meta", func(out *Output) error {
			out.Meta(json.RawMessage(`{"a":"` + long + `"}`))
			return out.Text("before")
		}, "before", "a result, with what it carries, of 5242"},
		{"a long error of a protocol", func(*Output) error {
			return &RPCError{Raw: json.RawMessage(`{"a":"` + long + `"}`), Err: errors.New("no")}
		}, "", "a result, with what it carries, of 5242"},
		{"content that is not UTF-8", func(out *Output) error { return out.Content(text("a\xff")) }, "a\uFFFD", ""},
		{"a link that is not UTF-8", func(out *Output) error {
			if err := out.Content(link); err == nil || errors.Is(err, ErrConnection) {
				return fmt.Errorf("sending the link: %w", err)
			}
			return out.Text("after")
		}, "after", ""},
		{"such a link with the result", func(out *Output) error { return out.WithResult([]*pluginv1.Content{link}) }, "", "cannot encode a message"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startCall(t, testServer(tool("x", func(_ context.Context, out *Output) error { return test.do(out) })), &pluginv1.CallRequest{Tool: "x"})
			got := c.result(t).GetError().GetMessage()
			if sent := strings.Join(c.stream.texts(), ""); !strings.HasPrefix(got, test.error) || (got == "") != (test.error == "") || sent != test.text {
				t.Errorf("error %q, want %q; %d bytes of text, want %d", got, test.error, len(sent), len(test.text))
			}
		})
	}
}

// Flush and Ask from the tool, Acknowledge and Answer from the host.
func TestAcknowledgeAndAnswerReachTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer string
		x := tool("x", func(ctx context.Context, out *Output) error {
			if err := out.Flush(ctx); err != nil {
				return err
			}
			value, err := out.Ask(ctx, Question{Prompt: "Which?"})
			answer = string(value)
			return err
		})
		s := testServer(x)
		c := startCall(t, s, &pluginv1.CallRequest{CallId: "1", Tool: "x"})
		for _, id := range []string{"stranger", "1"} {
			synctest.Wait()
			if n := len(c.stream.all()); n != 1 {
				t.Fatalf("%d events before the acknowledgement of %s", n, id)
			}
			if _, err := s.Acknowledge(t.Context(), &pluginv1.AcknowledgeRequest{CallId: id, Seq: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"stranger", "1"} {
			synctest.Wait()
			events := c.stream.all()
			if len(events) != 2 || events[1].GetAsk() == nil {
				t.Fatalf("events before the answer to %s: %v", id, events)
			}
			if _, err := s.Answer(t.Context(), &pluginv1.AnswerRequest{
				CallId: id, InteractionId: events[1].GetAsk().GetInteractionId(),
				Outcome: pluginv1.AnswerRequest_OUTCOME_ANSWERED, Value: []byte("7"),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if e := c.result(t).GetError(); e != nil || answer != "7" {
			t.Errorf("answer %q, error %v", answer, e)
		}
	})
}
