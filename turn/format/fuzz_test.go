package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// fuzzCalls holds what is true of any response. ids finds, by other means than
// the provider's, the ids of the calls in a response that was read.
func fuzzCalls(f *testing.F, p Provider, ids func(response any) []string) {
	err := recorded(func(_ Provider, _ string, response []byte) { f.Add(response) })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		calls, err := p.Calls(response)
		if err != nil {
			if len(calls) != 0 {
				t.Errorf("calls beside an error: %+v", calls)
			}
			return
		}
		var got []string
		for _, c := range calls {
			got = append(got, c.ID)
			checkCall(t, c)
		}
		if want := ids(decode(t, hollow(response, maxDepth+maxEnvelope))); !slices.Equal(got, want) {
			t.Errorf("ids are %q, want %q", got, want)
		}
	})
}

func checkCall(t *testing.T, c Call) {
	t.Helper()
	var arguments map[string]any
	sound := c.Problem == "" && json.Unmarshal(c.Arguments, &arguments) == nil && arguments != nil
	if refused := c.Problem != "" && c.Arguments == nil; c.ID == "" || c.Tool == "" && !refused || sound == refused {
		t.Errorf("%+v", c)
	}
}

func decode(t *testing.T, response []byte) (v any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(response, []byte(replacement))))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at follows keys and indexes; nil where they lead nowhere.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// idsOf are the strings or numbers under key of the items that match.
func idsOf(items any, key string, match func(item any) bool) (ids []string) {
	list, _ := items.([]any)
	for _, item := range list {
		if !match(item) {
			continue
		}
		switch id := at(item, key).(type) {
		case string:
			ids = append(ids, id)
		case json.Number:
			ids = append(ids, id.String())
		}
	}
	return ids
}

// Whatever a list is, each of its calls can be answered, and either is sound or
// has its problem.
func FuzzReadList(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"id":"2","tool":"t"},{"tool":"t"}]`, `[{"tool":"t","args":{}}]`, `[{"id":"a","id":"b"}]`, `[{"tool":"t","_meta":{}}]`, `{}`, `[5]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		calls, err := ReadList(raw)
		if err != nil {
			return
		}
		if err := checkCalls(calls); err != nil || len(calls) != len(decode(t, hollow(raw, maxDepth)).([]any)) {
			t.Errorf("%d calls, %v", len(calls), err)
		}
		for _, c := range calls {
			checkCall(t, c)
		}
	})
}

func FuzzAnthropicCalls(f *testing.F) {
	fuzzCalls(f, anthropic{}, func(v any) []string {
		return idsOf(at(v, "content"), "id", func(item any) bool { return at(item, "type") == "tool_use" })
	})
}

func FuzzResponsesCalls(f *testing.F) {
	fuzzCalls(f, responses{}, func(v any) []string {
		return idsOf(at(v, "output"), "call_id", func(item any) bool {
			return at(item, "type") == "function_call" || at(item, "type") == "custom_tool_call"
		})
	})
}

func FuzzChatCalls(f *testing.F) {
	fuzzCalls(f, chat{}, func(v any) []string {
		return idsOf(at(v, "choices", 0, "message", "tool_calls"), "id", func(item any) bool {
			kind, isText := at(item, "type").(string)
			return !isText || kind == "" || kind == "function" || kind == "custom"
		})
	})
}

func FuzzMCPCalls(f *testing.F) {
	fuzzCalls(f, mcp{}, func(v any) []string {
		if _, batch := v.([]any); !batch {
			v = []any{v}
		}
		return idsOf(v, "id", func(item any) bool { return at(item, "method") == "tools/call" })
	})
}

func FuzzGeminiCalls(f *testing.F) {
	fuzzCalls(f, gemini{}, func(v any) []string {
		parts, _ := at(v, "candidates", 0, "content", "parts").([]any)
		var calls []Call
		for _, part := range parts {
			call := at(part, "functionCall")
			if call == nil {
				call = at(part, "function_call")
			}
			if call != nil {
				id, _ := at(call, "id").(string)
				calls = append(calls, Call{ID: id})
			}
		}
		nameCalls(calls)
		var ids []string
		for _, c := range calls {
			ids = append(ids, c.ID)
		}
		return ids
	})
}
