package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const testKey = "key-of-the-test"

// basePaths are what the base URLs of the APIs end with.
var basePaths = map[string]string{"anthropic": "", "openai": "/v1", "openai-chat": "/v1"}

// step is one answer of the scripted server.
type step struct {
	status     int    // 0 is 200
	retryAfter string // of a refusal
	body       string
}

// server answers requests by a script, and keeps what it was asked.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	script   []step
	requests []*http.Request
	bodies   []string
}

func newServer(t *testing.T, script ...step) *server {
	t.Helper()
	s := &server{script: script}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	next := step{status: http.StatusTeapot, body: "the script is over"}
	if n := len(s.bodies); n <= len(s.script) {
		next = s.script[n-1]
	}
	s.mu.Unlock()
	if next.status != 0 {
		w.Header().Set("Retry-After", next.retryAfter)
		w.Header().Set("Location", "/elsewhere") // only of a redirect
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for rest := next.body; rest != ""; { // in pieces that end anywhere
		n := min(37, len(rest))
		_, _ = io.WriteString(w, rest[:n])
		w.(http.Flusher).Flush()
		rest = rest[n:]
	}
}

// body is the request that came as the nth, from 0.
func (s *server) body(t *testing.T, n, of int) (body map[string]any, raw string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) != of {
		t.Fatalf("%d requests came, want %d: %q", len(s.bodies), of, s.bodies)
	}
	if err := json.Unmarshal([]byte(s.bodies[n]), &body); err != nil {
		t.Fatal(err)
	}
	return body, s.bodies[n]
}

// scriptedCall is a call that the scripted model makes.
type scriptedCall struct{ id, tool, arguments string }

// streams write a response of each API as a stream.
var streams = map[string]func(text string, calls ...scriptedCall) step{
	"anthropic": anthropicStream, "openai": responsesStream, "openai-chat": chatStream,
}

// sse writes events; %q would not be JSON, so values come from quoted.
type sse struct{ strings.Builder }

func (s *sse) event(kind, format string, args ...any) {
	if kind != "" {
		s.WriteString("event: " + kind + "\r\n")
	}
	fmt.Fprintf(s, "data: "+format+"\r\n\r\n", args...)
}

// halves splits a text in two, as a model's stream might.
func halves(s string) [2]json.RawMessage {
	return [2]json.RawMessage{quoted(s[:len(s)/2]), quoted(s[len(s)/2:])}
}

func anthropicStream(text string, calls ...scriptedCall) step {
	var s sse
	s.event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":9}}}`)
	s.event("ping", `{"type":"ping"}`)
	s.event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for _, half := range halves(text) {
		s.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, half)
	}
	s.event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	reason := "end_turn"
	for i, c := range calls {
		reason = "tool_use"
		s.event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i+1, c.id, c.tool)
		for _, half := range halves(c.arguments) {
			s.event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i+1, half)
		}
		s.event("content_block_stop", `{"type":"content_block_stop","index":%d}`, i+1)
	}
	s.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}}`, reason)
	s.event("message_stop", `{"type":"message_stop"}`)
	return step{body: s.String()}
}

func responsesStream(text string, calls ...scriptedCall) step {
	var s sse
	s.event("response.created", `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`)
	for _, half := range halves(text) {
		s.event("response.output_text.delta", `{"type":"response.output_text.delta","output_index":1,"delta":%s}`, half)
	}
	items := []string{
		`{"id":"rs_1","type":"reasoning","summary":[]}`,
		fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quoted(text)),
	}
	for _, c := range calls {
		s.event("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","delta":%s}`, quoted(c.arguments))
		items = append(items, fmt.Sprintf(`{"id":"fc_%s","type":"function_call","call_id":%q,"name":%q,"arguments":%s,"status":"completed"}`, c.id, c.id, c.tool, quoted(c.arguments)))
	}
	s.event("response.completed", `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"output":[%s]}}`, strings.Join(items, ","))
	return step{body: s.String()}
}

func chatStream(text string, calls ...scriptedCall) step {
	var s sse
	chunk := func(delta, reason string) {
		s.event("", `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason)
	}
	chunk(`{"role":"assistant","content":null}`, "null")
	for _, half := range halves(text) {
		chunk(fmt.Sprintf(`{"content":%s}`, half), "null")
	}
	reason := `"stop"`
	for i, c := range calls {
		reason = `"tool_calls"`
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.id, c.tool), "null")
		for _, half := range halves(c.arguments) {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, half), "null")
		}
	}
	chunk(`{}`, reason)
	s.event("", `{"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"total_tokens":9}}`)
	s.event("", `[DONE]`)
	return step{body: s.String()}
}
