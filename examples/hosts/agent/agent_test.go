package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answered finds the results in a history: the ids in order, the texts, which
// of them are marked as errors (Anthropic only), and how many entries of the
// history they took.
func answered(t *testing.T, api string, body map[string]any) (ids, texts []string, failed []bool, entries int) {
	t.Helper()
	key := "messages"
	if api == "openai" {
		key = "input"
	}
	add := func(id, text any, isError any) {
		ids, texts = append(ids, id.(string)), append(texts, text.(string))
		failed = append(failed, isError == true)
	}
	for _, e := range body[key].([]any) {
		e := e.(map[string]any)
		switch {
		case e["role"] == "tool":
			entries++
			add(e["tool_call_id"], e["content"], nil)
		case e["type"] == "function_call_output":
			entries++
			add(e["call_id"], e["output"], nil)
		case api == "anthropic" && e["role"] == "user":
			content, ok := e["content"].([]any)
			if !ok {
				continue // the prompt
			}
			entries++
			for _, b := range content {
				b := b.(map[string]any)
				add(b["tool_use_id"], b["content"].([]any)[0].(map[string]any)["text"], b["is_error"])
			}
		}
	}
	return ids, texts, failed, entries
}

func TestRunsParallelCallsOfEachAPI(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("one\nTODO two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	calls := []scriptedCall{
		{"call_1", "search", `{"pattern":"TODO","path":"` + root + `"}`},
		{"call_2", "wordcount", `{"text":"drei kleine Wörter"}`},
	}
	for api, stream := range streams {
		t.Run(api, func(t *testing.T) {
			s := newServer(t, stream("Let me look…", calls...), stream("There is one <TODO>."))
			r := newSession(t, s, api, "--plugin", binary(t, "search"), "--plugin", binary(t, "wordcount"), "--read", root, "How many TODOs?")
			r.ends(t, exitOK)
			if want := "Let me look…\nThere is one <TODO>.\n"; r.stdout.String() != want {
				t.Errorf("stdout %q, want %q", r.stdout.String(), want)
			}
			first, _ := s.body(t, 0, 2)
			if tools := first["tools"].([]any); first["stream"] != true || first["model"] != "scripted" || len(tools) != 2 {
				t.Errorf("the first request is %v", first)
			}
			second, raw := s.body(t, 1, 2)
			ids, texts, failed, entries := answered(t, api, second)
			if !slices.Equal(ids, []string{"call_1", "call_2"}) || slices.Contains(failed, true) {
				t.Fatalf("results of %q, failed %v; want both in order, none failed", ids, failed)
			}
			contains(t, "the first result", texts[0], "a.txt:2: TODO two")
			contains(t, "the second result", texts[1], `"words":3`)
			contains(t, "the history", raw, "How many TODOs?", "Let me look…")
			if api == "anthropic" && entries != 1 {
				t.Errorf("the results are in %d messages, want one", entries)
			}
			checkOrder(t, api, second)
			checkKey(t, api, s)
		})
	}
}

// checkOrder: prompt, response, results.
func checkOrder(t *testing.T, api string, body map[string]any) {
	t.Helper()
	want, field, key := "", "role", "messages"
	switch api {
	case "anthropic":
		want = "user assistant user"
	case "openai-chat":
		want = "user assistant tool tool"
	case "openai":
		want, field, key = "<nil> reasoning message function_call function_call function_call_output function_call_output", "type", "input"
	}
	var got []string
	for _, e := range body[key].([]any) {
		s, ok := e.(map[string]any)[field].(string)
		if !ok {
			s = "<nil>"
		}
		got = append(got, s)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

func checkKey(t *testing.T, api string, s *server) {
	t.Helper()
	paths := map[string]string{"anthropic": "/v1/messages", "openai": "/v1/responses", "openai-chat": "/v1/chat/completions"}
	header, want := "Authorization", "Bearer "+testKey
	if api == "anthropic" {
		header, want = "X-Api-Key", testKey
	}
	for _, r := range s.requests {
		if r.URL.Path != paths[api] || r.Header.Get(header) != want {
			t.Errorf("a request to %s with the key %q, want %s and %q", r.URL.Path, r.Header.Get(header), paths[api], want)
		}
	}
}

func TestApproval(t *testing.T) {
	for _, c := range []struct{ stdin, want string }{
		{"n\n", "a human has denied it"}, {"", "asking for one has failed"}, {"yes please\n", "[DENIED]"}, {"y\n", `"words":2`},
	} {
		s := newServer(t, chatStream("May I?", scriptedCall{"call_1", "wordcount", `{"text":"two words"}`}), chatStream("So be it."))
		r := newSession(t, s, "openai-chat", "--ask", "--plugin", binary(t, "wordcount"), "Count")
		r.Stdin = strings.NewReader(c.stdin)
		r.ends(t, exitOK)
		contains(t, "stderr", r.stderr.String(), `Run the tool wordcount? {"text":"two words"} [y/N]`)
		second, _ := s.body(t, 1, 2)
		_, texts, _, _ := answered(t, "openai-chat", second)
		contains(t, "the result after "+c.stdin, texts[0], c.want)
	}
}

// With the prompt on stdin there is nobody to ask.
func TestHeadless(t *testing.T) {
	s := newServer(t, chatStream("May I?", scriptedCall{"call_1", "wordcount", `{"text":"two words"}`}), chatStream("So be it."))
	r := newSession(t, s, "openai-chat", "--ask", "--plugin", binary(t, "wordcount"))
	r.Stdin = strings.NewReader("Count\ny\n")
	r.ends(t, exitOK)
	second, _ := s.body(t, 1, 2)
	_, texts, _, _ := answered(t, "openai-chat", second)
	contains(t, "the result", texts[0], "nobody is there to give one")
}
