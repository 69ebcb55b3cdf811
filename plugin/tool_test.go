package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

type query struct {
	Text  string `json:"text" jsonschema:"what to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many"`
}

type summary struct {
	Hits int `json:"hits"`
}

func search(_ context.Context, q query, _ *Output) (summary, error) {
	return summary{Hits: len(q.Text) + q.Limit}, nil
}

// panicked is what f panics with, "" if it does not.
func panicked(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

func TestNewToolName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "Web_fetch-2": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "two words": false, "dot.ted": false, "ä": false, "a\n": false, "a/b": false,
	} {
		text := panicked(func() { NewTool(Tool{Name: name}, search) })
		if ok && text != "" {
			t.Errorf("%q: panic %s", name, text)
		}
		if !ok && !strings.Contains(text, fmt.Sprintf("tool name %q", name)) {
			t.Errorf("%q: panic %q, want one that names it", name, text)
		}
	}
}

func newToolOf[In, Out any]() func() {
	return func() {
		NewTool(Tool{Name: "x"}, func(context.Context, In, *Output) (out Out, err error) { return out, err })
	}
}

// What tools embed.
type (
	Pages struct {
		From int `json:"from"`
		To   int `json:"to"`
	}
	Level int
)

func TestNewToolTypes(t *testing.T) {
	for _, test := range []struct {
		name string
		make func()
		want string // part of the panic, "" for none
	}{
		{"struct", newToolOf[query, summary](), ""},
		{"map", newToolOf[map[string]int, []string](), ""},
		{"result of any type", newToolOf[query, int](), ""},
		{"string argument", newToolOf[string, None](), "argument type string must be a struct or a map"},
		{"list argument", newToolOf[[]query, None](), "must be a struct or a map"},
		{"pointer argument", newToolOf[*query, None](), "argument type *plugin.query must be a struct or a map"},
		{"argument without a schema", newToolOf[struct{ C chan int }, None](), "no JSON Schema for its argument type"},
		{"embedded fields", newToolOf[struct {
			query
			*Pages
		}, None](), ""},
		{"embedded under a name", newToolOf[struct {
			Pages `json:"pages"`
		}, None](), "plugin.Pages, which is one JSON field \"pages\": give it a name in Go, too"},
		{"embedded number", newToolOf[struct{ Level }, None](), "plugin.Level, which is one JSON field \"Level\""},
		{"embedded far below", newToolOf[map[string][]struct {
			Pages `json:"pages"`
		}, None](), "one JSON field \"pages\""},
		{"result without a schema", newToolOf[query, func()](), "no JSON Schema for its result type"},
	} {
		text := panicked(test.make)
		if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
			t.Errorf("%s: panic %q, want %q", test.name, text, test.want)
		}
	}
}

func sameJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSchemasComeFromTags(t *testing.T) {
	d := NewTool(Tool{Name: "search"}, search).Describe()
	sameJSON(t, d.GetInputSchema(), `{
		"type": "object", "additionalProperties": false, "required": ["text"],
		"properties": {
			"text": {"type": "string", "description": "what to look for"},
			"limit": {"type": "integer", "description": "at most so many"}}}`)
	sameJSON(t, d.GetOutputSchema(), `{
		"type": "object", "additionalProperties": false, "required": ["hits"],
		"properties": {"hits": {"type": "integer"}}}`)
}

func TestDescriptionIsComplete(t *testing.T) {
	got := proto.CloneOf(NewTool(Tool{
		Name: "search", Title: "Search", Description: "Looks.",
		ReadOnly: true, Idempotent: true, Destructive: true, OpenWorld: true, Exclusive: true,
		Timeout: 90 * time.Second, SoftBudget: 1500 * time.Millisecond, TimeoutArgument: "limit",
		Wish: Wish{Read: []string{"/r"}, Write: []string{"/w"}, Network: true, MemoryBytes: 5, Pids: 6},
	}, search).Describe())
	got.InputSchema, got.OutputSchema = nil, nil
	want := &pluginv1.ToolDescription{
		Name: "search", Title: "Search", Description: "Looks.",
		Annotations:     &pluginv1.Annotations{ReadOnly: new(true), Idempotent: new(true), Destructive: new(true), OpenWorld: new(true)},
		Concurrency:     pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
		Timeouts:        &pluginv1.TimeoutHints{TimeoutMs: 90_000, SoftBudgetMs: 1500},
		TimeoutArgument: "limit",
		Wish:            &pluginv1.SandboxWish{Read: []string{"/r"}, Write: []string{"/w"}, Network: true, MemoryBytes: 5, Pids: 6},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestAbsentClaimsStayAbsent(t *testing.T) {
	d := NewTool(Tool{Name: "search"}, search).Describe()
	a := d.GetAnnotations()
	if a.ReadOnly != nil || a.Destructive != nil || a.Idempotent != nil || a.OpenWorld != nil {
		t.Errorf("claims: %v", a)
	}
	if c := d.GetConcurrency(); c != pluginv1.Concurrency_CONCURRENCY_UNSPECIFIED {
		t.Errorf("concurrency: %v", c)
	}
}

func TestClaimsOfNo(t *testing.T) {
	a := NewTool(Tool{Name: "search", Additive: true, ClosedWorld: true}, search).Describe().GetAnnotations()
	if want := (&pluginv1.Annotations{Destructive: new(false), OpenWorld: new(false)}); !proto.Equal(a, want) {
		t.Errorf("got %v, want %v", a, want)
	}
	for _, both := range []Tool{{Destructive: true, Additive: true}, {OpenWorld: true, ClosedWorld: true}} {
		both.Name = "search"
		if _, err := NewRawTool(both, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "contradict one another") {
			t.Errorf("%+v: %v", both, err)
		}
	}
}

// What no message can carry is refused before a host asks for it.
func TestWishesThatAreNotUTF8(t *testing.T) {
	for _, wish := range []Wish{{Read: []string{"\xff"}}, {Write: []string{"\xff"}}, {Reach: []string{"\xff"}}} {
		if _, err := NewRawTool(Tool{Name: "search", Wish: wish}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
			t.Errorf("%+v: %v", wish, err)
		}
	}
}

func TestRunDecodesAndEncodes(t *testing.T) {
	search := NewTool(Tool{Name: "search"}, search)
	for arguments, want := range map[string]string{
		`{"text":"abc","limit":4}`: `{"hits":7}`,
		``:                         `{"hits":0}`,
		" \n":                      `{"hits":0}`,
	} {
		got, err := search.Run(t.Context(), json.RawMessage(arguments), nil)
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", arguments, got, err, want)
		}
	}
}

func TestArgumentsThatDoNotDecode(t *testing.T) {
	ran := false
	x := NewTool(Tool{Name: "x"}, func(context.Context, query, *Output) (None, error) {
		ran = true
		return None{}, nil
	})
	for _, arguments := range []string{`{`, `[]`, `"text"`, `{"limit":"many"}`, `{"limit":1.5}`, `{} {}`} {
		_, err := x.Run(t.Context(), json.RawMessage(arguments), nil)
		invalid, ok := errors.AsType[*InvalidArgumentsError](err)
		if !ok || invalid.Unwrap() == nil || err.Error() != "invalid arguments: "+invalid.Err.Error() {
			t.Errorf("%s: error %v", arguments, err)
		}
	}
	if ran {
		t.Error("the tool ran")
	}
}

func TestNoneHasNoResult(t *testing.T) {
	x := NewTool(Tool{Name: "x"}, func(context.Context, query, *Output) (None, error) { return None{}, nil })
	if s := x.Describe().GetOutputSchema(); s != nil {
		t.Errorf("output schema %s", s)
	}
	if got, err := x.Run(t.Context(), nil, nil); got != nil || err != nil {
		t.Errorf("result %q, %v", got, err)
	}
}

func TestAnErrorHasNoResult(t *testing.T) {
	oops := errors.New("oops")
	x := NewTool(Tool{Name: "x"}, func(context.Context, query, *Output) (summary, error) { return summary{1}, oops })
	if got, err := x.Run(t.Context(), nil, nil); got != nil || !errors.Is(err, oops) {
		t.Errorf("result %q, %v", got, err)
	}
}

func TestResultThatDoesNotEncode(t *testing.T) {
	x := NewTool(Tool{Name: "x"}, func(context.Context, query, *Output) (json.RawMessage, error) {
		return json.RawMessage("{"), nil
	})
	if got, err := x.Run(t.Context(), nil, nil); got != nil || err == nil {
		t.Errorf("result %q, %v", got, err)
	}
}

func TestServeRefusesNoToolsAndTwoOfOneName(t *testing.T) {
	a, b := NewTool(Tool{Name: "a"}, search), NewTool(Tool{Name: "b"}, search)
	for _, test := range []struct {
		tools []Registered
		want  string
	}{
		{[]Registered{a, b}, ""},
		{nil, "at least one tool"},
		{[]Registered{a, b, a}, `two tools are named "a"`},
	} {
		text := panicked(func() { mustBeDistinct(test.tools) })
		if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
			t.Errorf("panic %q, want %q", text, test.want)
		}
	}
}

func TestUsageNamesEveryTool(t *testing.T) {
	var b strings.Builder
	usage(&b, fixed{NewTool(Tool{Name: "first"}, search), NewTool(Tool{Name: "second"}, search)})
	if !strings.Contains(b.String(), "(first, second)") || !strings.Contains(b.String(), "toolhost run") {
		t.Errorf("usage: %s", b.String())
	}
}
