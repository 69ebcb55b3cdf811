package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

// hang sends part of a stream, and the rest never.
func hang(part string, asked, release chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, part)
		w.(http.Flusher).Flush()
		close(asked)
		<-release
	})
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ stream, want string }{
		{"data: a\n\ndata: b\n\n", "a|b"},
		{"\ufeffdata:a\r\n\r\n", "a"},
		{"event: x\n: comment\nid: 7\ndata: a\ndata:  b\n\n", "a\n b"},
		{"event: x\n\ndata: a\n\n\n\n", "a"},
		{"data: whole\n\ndata: cut", "whole"},
		{"", ""},
	} {
		var got []string
		for data, err := range events(iotest.OneByteReader(strings.NewReader(c.stream))) {
			if err != nil {
				t.Errorf("%q: %v", c.stream, err)
			}
			got = append(got, string(data))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q: events %q, want %q", c.stream, got, c.want)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, stream := range map[string]string{
		"line": "data: " + strings.Repeat(long, 9), "event": strings.Repeat("data: "+long+"\n", 9), "stream": strings.Repeat(": "+long+"\n", 33),
	} {
		var last error
		for _, err := range events(strings.NewReader(stream)) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), name) || !strings.Contains(last.Error(), "more than") {
			t.Errorf("a long %s: %v", name, last)
		}
	}
	broken := io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(errors.New("reset")))
	var last error
	for _, err := range events(broken) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "broke off: reset") {
		t.Errorf("a broken stream: %v", last)
	}
}

// replied gathers a stream and reads its calls.
func replied(t *testing.T, api, stream string) (response json.RawMessage, calls []format.Call) {
	t.Helper()
	r := dialects[api].newReply(func(string) {})
	if err := gather(strings.NewReader(stream), r); err != nil {
		t.Fatal(err)
	}
	response, err := r.whole()
	if err != nil {
		t.Fatal(err)
	}
	provider, err := format.Lookup(api)
	if err != nil {
		t.Fatal(err)
	}
	if calls, err = provider.Calls(response); err != nil {
		t.Fatal(err)
	}
	return response, calls
}

// Arguments that are not JSON cost one call, and the history holds an object.
func TestBrokenArguments(t *testing.T) {
	for api, stream := range streams {
		response, calls := replied(t, api, stream("Hm.",
			scriptedCall{"call_1", "search", `{"pattern": "a`}, scriptedCall{"call_2", "search", `{"pattern":"b"}`}, scriptedCall{"call_3", "search", ""}).body)
		if len(calls) != 3 || calls[0].Problem == "" || calls[1].Problem != "" || string(calls[2].Arguments) != "{}" {
			t.Errorf("%s: calls %+v", api, calls)
		}
		entries, err := dialects[api].said(response)
		if err != nil {
			t.Fatal(err)
		}
		kept := string(bytes.Join(toBytes(entries), nil))
		contains(t, api, strings.ReplaceAll(kept, `\`, ""), `{"INVALID_JSON":"{"pattern": "a"}`, `{"pattern":"b"}`)
	}
}

// Nor does it hold half of a character, as no API takes it back.
func TestHalfACharacter(t *testing.T) {
	for api, stream := range streams {
		response, _ := replied(t, api, stream("", scriptedCall{"call_1", "search", `{"pattern":"\uD83D","path":"\ud83d\ude00","n":12345678901234567890}`}).body)
		entries, err := dialects[api].said(response)
		if err != nil {
			t.Fatal(err)
		}
		kept := strings.ReplaceAll(string(bytes.Join(toBytes(entries), nil)), `\`, "")
		contains(t, api, kept, `"n":12345678901234567890`, `"path":"😀"`, `"pattern":"`+"\ufffd"+`"`)
	}
}

func toBytes(entries []json.RawMessage) (list [][]byte) {
	for _, e := range entries {
		list = append(list, e)
	}
	return list
}

// Thoughts go back as they came, signature and all; blank texts do not.
func TestAnthropicThoughts(t *testing.T) {
	var s sse
	s.event("", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)
	s.event("", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let"}}`)
	s.event("", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" me"}}`)
	s.event("", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`)
	s.event("", `{"type":"content_block_delta","index":0,"delta":{"type":"unheard_of_delta"}}`)
	s.event("", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
	s.event("", `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"\n\n"}}`)
	s.event("", `{"type":"message_stop"}`)
	response, _ := replied(t, "anthropic", s.String())
	entries, err := anthropic{}.said(response)
	if want := `{"content":[{"signature":"c2ln","thinking":"Let me","type":"thinking"}],"role":"assistant"}`; err != nil || len(entries) != 1 || string(entries[0]) != want {
		t.Errorf("%s, %v; want %s", entries, err, want)
	}
}

// So do those of servers that speak OpenAI's Chat Completions API and refuse a history
// without them.
func TestChatThoughts(t *testing.T) {
	var s sse
	s.event("", `{"choices":[{"delta":{"reasoning_content":"Let"}}]}`)
	s.event("", `{"choices":[{"delta":{"reasoning_content":" me"}}]}`)
	s.event("", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"search","arguments":"{"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}`)
	s.event("", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}`)
	s.event("", `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
	response, _ := replied(t, "openai-chat", s.String())
	entries, err := chat{}.said(response)
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"search","arguments":"{}"},` +
		`"extra_content":{"google":{"thought_signature":"c2ln"}}}],"reasoning_content":"Let me"}`
	if err != nil || len(entries) != 1 || string(entries[0]) != want {
		t.Errorf("%s, %v; want %s", entries, err, want)
	}
}

// A call without an id is refused as one, and not as a piece of another.
func TestChatCallWithoutID(t *testing.T) {
	var s sse
	s.event("", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"search","arguments":"{"}}]}}]}`)
	s.event("", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}`)
	s.event("", `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
	srv := newServer(t, step{body: s.String()})
	r := newSession(t, srv, "openai-chat", "Go")
	r.ends(t, exitFailed)
	contains(t, "stderr", r.stderr.String(), `call 1 (of "search") has no id`)
}

// Some servers send whole calls, without an index or a type.
func TestChatCallsWithoutIndex(t *testing.T) {
	var s sse
	for _, id := range []string{"a", "b"} {
		s.event("", `{"choices":[{"delta":{"tool_calls":[{"id":%q,"function":{"name":"search","arguments":"{}"}}]}}]}`, id)
	}
	s.event("", `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
	if _, calls := replied(t, "openai-chat", s.String()); len(calls) != 2 || calls[0].ID != "a" || calls[1].ID != "b" {
		t.Errorf("calls %+v", calls)
	}
}

// An abort leaves a history in which every call has its result.
func TestHistoryIsValidAfterAnAbort(t *testing.T) {
	s := newServer(t, anthropicStream("Both.", scriptedCall{"call_1", "a", `{}`}, scriptedCall{"call_2", "b", `{}`}))
	provider, _ := format.Lookup("anthropic")
	ctx, cancel := context.WithCancelCause(t.Context())
	a := &agent{
		client:   &client{api: anthropic{}, url: s.URL, http: s.Client(), text: func(string) {}, stream: unbounded},
		provider: provider, maxRounds: 5,
		run: func(_ context.Context, calls []turn.Call) (results []*api.Result, err error) {
			cancel(errInterrupted)
			for _, c := range calls {
				results = append(results, supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Status: api.StatusCancelled, Message: "[CANCELLED]"}.Result())
			}
			return results, nil
		},
	}
	if err := a.talk(ctx, "Go"); !errors.Is(err, errInterrupted) {
		t.Errorf("error %v", err)
	}
	if len(a.history) != 3 {
		t.Fatalf("the history is %s", a.history)
	}
	contains(t, "the last message", string(a.history[2]), `"tool_use_id":"call_1"`, `"tool_use_id":"call_2"`, `"is_error":true`)
}

func unbounded(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil }

// The model's time is bounded, and nothing is kept of what it began.
func TestSilentModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		current, err := turn.New(turn.Config{}).Begin(turn.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		defer current.End()
		body, writer := io.Pipe()
		defer writer.Close()
		c := &client{api: chat{}, url: "http://model.example", text: func(string) {}, stream: current.Stream, http: &http.Client{Transport: transport(func(r *http.Request) *http.Response {
			context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
		})}}
		began := time.Now()
		if _, err := c.ask(t.Context(), nil); !errors.Is(err, turn.ErrStreamOver) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if _, err := c.ask(t.Context(), nil); !errors.Is(err, turn.ErrStreamOver) {
			t.Errorf("asked once more: %v", err)
		}
	})
}

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got == nil || *got != want {
			t.Errorf("%q: %v, want %s", header, got, want)
		}
	}
	for _, header := range []string{"", "-1", "soon", "99999999999999999999"} {
		if got := retryAfter(header, now); got != nil {
			t.Errorf("%q: %s, want none", header, *got)
		}
	}
	if got := (busyError{}).pause(3); got != 4*time.Second {
		t.Errorf("the third pause is %s", got)
	}
}

// A line begun for a question that is over answers no other.
func TestLateAnswerApprovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, human := io.Pipe()
		var out bytes.Buffer
		a := newAsker(in, &out)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Ask(ctx, api.Interaction{Prompt: "First?"}); err == nil {
			t.Error("nobody has answered, yet there is an answer")
		}
		answer := make(chan bool)
		go func() {
			got, err := a.Ask(t.Context(), api.Interaction{Prompt: "Second?", Tool: "evil\x1b[2J\n"})
			answer <- err == nil && got.Approve
		}()
		_, _ = io.WriteString(human, "y\n")
		synctest.Wait()
		contains(t, "the terminal", out.String(), "too late")
		_, _ = io.WriteString(human, "Y\n")
		if !<-answer {
			t.Error("the second y did not approve")
		}
		if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "evil\ufffd[2J\n") {
			t.Errorf("the terminal got %q", out.String())
		}
		_ = human.Close()
		for _, i := range []api.Interaction{{}, {}, {Secret: true}, {Schema: json.RawMessage(`{}`)}} {
			if got, err := a.Ask(t.Context(), i); err != nil || got.Unanswered != api.OutcomeFailed {
				t.Errorf("at the end of input: %+v, %v", got, err)
			}
		}
	})
}
