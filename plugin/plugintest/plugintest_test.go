package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type query struct {
	Text  string `json:"text"`
	Limit int    `json:"limit,omitempty"`
}

type summary struct {
	Hits int `json:"hits"`
}

func toolOf(do func(context.Context, query, *plugin.Output) (summary, error)) plugin.Registered {
	return plugin.NewTool(plugin.Tool{Name: "x"}, do)
}

// failures is a test that only notes that it failed.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failuresOf runs a test and returns what it failed of.
func failuresOf(t *testing.T, test func(testing.TB)) []string {
	f := &failures{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	return f.list
}

// wantFailure wants exactly one failure that contains want.
func wantFailure(t *testing.T, want string, test func(testing.TB)) {
	t.Helper()
	if got := failuresOf(t, test); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("failures %q, want one with %q", got, want)
	}
}

// A question has its answer, and a flush its acknowledgement.
func TestReplies(t *testing.T) {
	x := toolOf(func(ctx context.Context, in query, out *plugin.Output) (summary, error) {
		var hits int
		answer, err := out.Ask(ctx, plugin.Question{Prompt: "How many?", Schema: json.RawMessage(`{"type":"integer"}`)})
		err = errors.Join(err, json.Unmarshal(answer, &hits), out.Flush(ctx))
		if _, denied := out.Ask(ctx, plugin.Question{Prompt: "Sure?"}); !errors.Is(denied, plugin.ErrDenied) {
			t.Errorf("denied: %v", denied)
		}
		return summary{Hits: hits}, err
	})
	r := Host{Answers: []Answer{{Value: 7}, {Denied: "user"}}}.Call(t, x, query{Text: "q"})
	if !r.OK() || string(r.Structured) != `{"hits":7}` || r.Flushes != 1 || len(r.Questions) != 2 {
		t.Errorf("%+v", r)
	}
	if list := failuresOf(t, func(t testing.TB) { Call(t, x, query{Text: "q"}) }); len(list) != 2 || !strings.Contains(list[1], "give one in Host.Answers") {
		t.Errorf("without answers: %q", list)
	}
}

// A function that ends its goroutine, as FailNow does, has not succeeded.
func TestAFunctionThatDoesNotReturn(t *testing.T) {
	x := toolOf(func(context.Context, query, *plugin.Output) (summary, error) {
		runtime.Goexit()
		return summary{}, nil
	})
	if r := Call(t, x, query{Text: "q"}); r.OK() || !strings.Contains(r.Error.Message, "runtime.Goexit") {
		t.Errorf("%+v", r)
	}
}

func TestEverythingThatIsSentIsInTheResult(t *testing.T) {
	buffer := []byte("abc")
	x := toolOf(func(_ context.Context, in query, out *plugin.Output) (summary, error) {
		err := errors.Join(out.Text("a"), out.JSON(in), out.Blob("image/png", buffer), out.Link("file:///x", "x", "text/plain"),
			out.Progress(0.5, "half"), out.Progress(-1, "who knows"), out.Log("note"), out.Heartbeat(), out.Text("b"))
		copy(buffer, "xyz")
		return summary{Hits: 7}, err
	})
	r := Call(t, x, query{Text: "q"})
	if !r.OK() || r.Text() != "ab" || r.Heartbeats != 1 || !slices.Equal(r.Logs, []string{"note"}) {
		t.Errorf("result %+v", r)
	}
	if want := []Progress{{0.5, "half"}, {-1, "who knows"}}; !slices.Equal(r.Progress, want) {
		t.Errorf("progress %v", r.Progress)
	}
	want := []Content{
		{Type: "text", Text: "a"},
		{Type: "json", JSON: json.RawMessage(`{"text":"q"}`)},
		{Type: "blob", MIMEType: "image/png", Data: []byte("abc")},
		{Type: "resource_link", URI: "file:///x", Name: "x", MIMEType: "text/plain"},
		{Type: "text", Text: "b"},
	}
	if fmt.Sprint(r.Content) != fmt.Sprint(want) {
		t.Errorf("content %v", r.Content)
	}
	if got := Value[summary](t, r); got.Hits != 7 {
		t.Errorf("value %+v", got)
	}
}

func TestArgumentsAreCheckedAsAHostDoes(t *testing.T) {
	ran := false
	x := toolOf(func(context.Context, query, *plugin.Output) (summary, error) {
		ran = true
		return summary{}, nil
	})
	for _, arguments := range []any{nil, `{}`, `{`, `[]`, `null`, `{"text":1}`, `{"text":"a","colour":"red"}`, []byte(`{"text":"a","limit":"3"}`)} {
		r := Call(t, x, arguments)
		if r.OK() || r.Error.Kind != KindInvalidArguments || ran {
			t.Errorf("%v: %+v", arguments, r)
		}
	}
	for _, arguments := range []any{`{"text":"a"}`, json.RawMessage(`{"text":"a","limit":3}`), map[string]any{"text": "a"}} {
		if r := Call(t, x, arguments); !r.OK() {
			t.Errorf("%v: %v", arguments, r.Error)
		}
	}
	wantFailure(t, "cannot encode the arguments", func(tb testing.TB) { Call(tb, x, func() {}) })
}

func TestErrorsAndPanicsAreResults(t *testing.T) {
	r := Call(t, toolOf(func(context.Context, query, *plugin.Output) (summary, error) { return summary{}, errors.New("no") }), query{})
	if r.Error == nil || r.Error.Kind != KindError || r.Error.Message != "no" || r.Error.Error() != "error: no" {
		t.Errorf("%+v", r.Error)
	}
	wantFailure(t, "x failed: error: no", func(tb testing.TB) { Value[summary](tb, r) })
	r = Call(t, toolOf(func(context.Context, query, *plugin.Output) (summary, error) { panic("kaboom") }), query{})
	if r.Error == nil || r.Error.Kind != KindPanic || !strings.Contains(r.Error.Stack, "plugintest") {
		t.Errorf("%+v", r.Error)
	}
	r = Call(t, toolOf(func(context.Context, query, *plugin.Output) (summary, error) {
		return summary{}, &plugin.CommandExit{Code: 3}
	}), query{})
	if r.OK() || r.Exit == nil || r.Exit.Code != 3 {
		t.Errorf("%+v", r)
	}
}

// What no host could be sent is not taken here either.
func TestWhatCannotBeEncoded(t *testing.T) {
	r := Call(t, toolOf(func(_ context.Context, _ query, out *plugin.Output) (summary, error) {
		link := &pluginv1.ResourceLink{Uri: "\xff"}
		return summary{}, out.Content(&pluginv1.Content{Content: &pluginv1.Content_Link{Link: link}})
	}), query{})
	if r.Error == nil || !strings.Contains(r.Error.Message, "cannot encode a message") || len(r.Content) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAStructuredResultMustSatisfyItsSchema(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	x, err := plugin.NewRawTool(plugin.Tool{Name: "x"}, object, object, func(context.Context, json.RawMessage, *plugin.Output) (json.RawMessage, error) {
		return json.RawMessage(`"text"`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, "does not satisfy its output schema", func(tb testing.TB) { Call(tb, x, nil) })
	none := plugin.NewTool(plugin.Tool{Name: "x"}, func(context.Context, struct{}, *plugin.Output) (plugin.None, error) {
		return plugin.None{}, nil
	})
	r := Call(t, none, nil)
	wantFailure(t, "returned no structured result", func(tb testing.TB) { Value[summary](tb, r) })
	wantFailure(t, "cannot decode", func(tb testing.TB) { Value[int](tb, &Result{Structured: json.RawMessage(`"a"`)}) })
}

func TestTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		x := toolOf(func(ctx context.Context, _ query, out *plugin.Output) (summary, error) {
			_ = out.Text("begun")
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Second) // tidies up
			return summary{Hits: 1}, nil
		})
		began := time.Now()
		r := Host{Timeout: 5 * time.Minute}.Call(t, x, query{})
		if !r.OK() || r.Text() != "begun" || !errors.Is(cause, plugin.ErrDeadline) {
			t.Errorf("%+v, cause %v", r, cause)
		}
		if took := time.Since(began); took != 5*time.Minute+time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestADeafToolFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		x := toolOf(func(context.Context, query, *plugin.Output) (summary, error) {
			<-release
			return summary{}, nil
		})
		began := time.Now()
		wantFailure(t, "still runs 2s after it was told to end", func(tb testing.TB) { Call(tb, x, query{}) })
		if took := time.Since(began); took != DefaultTimeout+DefaultGrace {
			t.Errorf("took %s", took)
		}
		wantFailure(t, "still runs 1s after", func(tb testing.TB) {
			r := Host{Grace: time.Second}.Start(tb, x, query{})
			r.Cancel("enough")
			r.Result()
		})
		close(release)
	})
}

func TestAwaitAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := toolOf(func(ctx context.Context, _ query, out *plugin.Output) (summary, error) {
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return summary{}, context.Cause(ctx)
				case <-time.After(time.Second):
					_ = out.Progress(-1, fmt.Sprint(i))
				}
			}
		})
		r := Start(t, x, query{})
		r.Await(func(r *Result) bool { return len(r.Progress) == 3 })
		r.Cancel("the user pressed stop")
		r.Cancel("again")
		got := r.Result()
		if got.Error == nil || got.Error.Kind != KindCancelled || !strings.Contains(got.Error.Message, "the user pressed stop") || len(got.Progress) != 3 {
			t.Errorf("%+v", got)
		}
		if again := r.Result(); again.Error == nil {
			t.Error("the result is there once only")
		}
	})
}

func TestCancelOfACallThatHasHardlyBegun(t *testing.T) {
	x := toolOf(func(ctx context.Context, _ query, _ *plugin.Output) (summary, error) {
		<-ctx.Done()
		return summary{}, context.Cause(ctx)
	})
	for range 100 {
		r := Start(t, x, query{})
		r.Cancel("at once")
		if got := r.Result(); got.Error == nil || got.Error.Kind != KindCancelled {
			t.Fatalf("%+v", got)
		}
	}
}

func TestAwaitOfWhatNeverComes(t *testing.T) {
	x := toolOf(func(_ context.Context, _ query, out *plugin.Output) (summary, error) { return summary{}, out.Text("x") })
	wantFailure(t, "returned before it had sent what the test waits for; it sent 1 pieces of content", func(tb testing.TB) {
		Start(tb, x, query{}).Await(func(*Result) bool { return false })
	})
	Start(t, x, query{}).Await(func(r *Result) bool { return r.Structured != nil })
}

// A call that the test left alone ends with it.
func TestACallEndsWithItsTest(t *testing.T) {
	ended := make(chan error, 1)
	x := toolOf(func(ctx context.Context, _ query, _ *plugin.Output) (summary, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return summary{}, nil
	})
	t.Run("inner", func(t *testing.T) { Start(t, x, query{}) })
	if len(ended) != 1 {
		t.Error("it still runs")
	}
}

func TestParallelCallsOfOneTool(t *testing.T) {
	x := toolOf(func(_ context.Context, in query, out *plugin.Output) (summary, error) {
		return summary{Hits: in.Limit}, out.Text(in.Text)
	})
	var calls []*Running
	for i := range 50 {
		calls = append(calls, Start(t, x, query{Text: fmt.Sprint(i), Limit: i}))
	}
	for i, call := range calls {
		if r := call.Result(); r.Text() != fmt.Sprint(i) || Value[summary](t, r).Hits != i {
			t.Errorf("call %d: %+v", i, r)
		}
	}
}
