package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
)

func TestLimitsOfResponses(t *testing.T) {
	deep := strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000)
	for name, c := range map[string]struct {
		response string
		limit    int
	}{
		"deep":            {deep, maxDepth},
		"deep objects":    {strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000), maxDepth},
		"deep and open":   {strings.Repeat(`[`, 1_000_000), maxDepth},
		"large":           {`"` + strings.Repeat(`x`, maxResponseBytes) + `"`, maxResponseBytes},
		"brackets quoted": {`"` + strings.Repeat(`[`, 10_000) + `\"` + strings.Repeat(`{`, 10_000) + `"`, 0},
	} {
		for _, p := range providers {
			_, err := p.Calls([]byte(c.response))
			limit, typed := errors.AsType[*LimitError](err)
			if err == nil || typed != (c.limit != 0) || typed && limit.Limit != c.limit {
				t.Errorf("%s, %s: %v", name, p.Name(), err)
			}
		}
	}
}

// What is deep in a string of the response is that call's problem.
func TestDeepArgumentsInAString(t *testing.T) {
	deep, err := json.Marshal(strings.Repeat(`{"a":`, 10_000))
	if err != nil {
		t.Fatal(err)
	}
	calls, err := responses{}.Calls(fmt.Appendf(nil, `{"output":[{"type":"function_call","call_id":"a","name":"t","arguments":%s},
		{"type":"function_call","call_id":"b","name":"t","arguments":"{}"}]}`, deep))
	if err != nil || len(calls) != 2 || !strings.Contains(calls[0].Problem, "256 levels") || calls[1].Problem != "" {
		t.Errorf("%+v, %v", calls, err)
	}
}

// What is deep and in no call's arguments is nobody's problem but the response's.
func TestDeepElsewhere(t *testing.T) {
	deep := strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000)
	_, err := anthropic{}.Calls([]byte(`{"type":"message","content":[{"type":"tool_use","id":"a","name":"b","input":{},"caller":` + deep + `}]}`))
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != maxDepth {
		t.Error(err)
	}
}

// What is deep in arguments is that call's problem, whatever the format; as deep
// as they may be is none.
func TestDeepArguments(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
	}
	for form, wrap := range map[string]string{
		"anthropic":   `{"type":"message","content":[{"type":"tool_use","id":"a","name":"t","input":%s},{"type":"tool_use","id":"b","name":"t","input":{}}]}`,
		"openai":      `{"output":[{"type":"function_call","call_id":"a","name":"t","arguments":%s},{"type":"function_call","call_id":"b","name":"t"}]}`,
		"openai-chat": `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"t","arguments":%s}},{"id":"b","function":{"name":"t"}}]}}]}`,
		"mcp": `[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":%s}},
			{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"t"}}]`,
		"mcp meta": `[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","_meta":%s}},
			{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"t"}}]`,
		"list": `[{"id":"a","tool":"t","arguments":%s},{"id":"b","tool":"t"}]`,
	} {
		for levels, deep := range map[int]bool{maxDepth: false, maxDepth + 1: true, maxDepth + maxEnvelope: true, 100_000: true} {
			response := fmt.Appendf(nil, wrap, nested(levels))
			read := ReadList
			if name, _, _ := strings.Cut(form, " "); name != "list" {
				p, err := Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				read = p.Calls
			}
			calls, err := read(response)
			if err != nil || len(calls) != 2 || strings.Contains(calls[0].Problem, "256 levels") != deep || calls[1].Problem != "" {
				t.Errorf("%s, %d levels: %.300v, %v", form, levels, calls, err)
			}
		}
	}
}

func TestOddResponses(t *testing.T) {
	for _, response := range []string{
		``, ` `, `null`, `true`, `5`, `"text"`, `[]`, `[[]]`, `{`, `{}`, `{"content":5}`, `{"content":["x"]}`, `{"output":{}}`,
		`{"choices":[5]}`, `{"choices":[{"message":{"tool_calls":5}}]}`, `{"error":"no"}`, `{} {}`, "\xff",
		`{"ID":"a","Content":[],"Output":[],"Choices":[],"JSONRPC":"2.0"}`,
	} {
		for _, p := range providers {
			if calls, err := p.Calls([]byte(response)); err == nil && response != `[]` {
				t.Errorf("%s takes %q: %+v", p.Name(), response, calls)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for _, name := range Names() {
		if p, err := Lookup(name); err != nil || p.Name() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := Lookup("nobody"); err == nil || !strings.Contains(err.Error(), "known are anthropic, openai, openai-chat, mcp, gemini") {
		t.Error(err)
	}
}

func TestResultsThatDoNotMatch(t *testing.T) {
	one := []*api.Result{ok()}
	for name, c := range map[string]struct {
		calls   []Call
		results []*api.Result
		want    string
	}{
		"too few":  {[]Call{{ID: "a", Tool: "t"}, {ID: "b", Tool: "t"}}, one, "2 calls have 1 results"},
		"too many": {nil, one, "0 calls have 1 results"},
		"nil":      {[]Call{{ID: "a", Tool: "t"}}, []*api.Result{nil}, `"a" has no result`},
		"twice":    {[]Call{{ID: "a", Tool: "t"}, {ID: "a", Tool: "t"}}, append(one, one...), `have the id "a"`},
	} {
		for _, p := range providers {
			if _, err := p.Results(c.calls, c.results); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", name, p.Name(), err)
			}
		}
	}
}

// Results of a custom tool call have their own type.
func TestCustomResult(t *testing.T) {
	raw, err := responses{}.Results([]Call{{ID: "a", Tool: "t", Custom: true}}, []*api.Result{ok()})
	if err != nil || string(raw) != `[{"type":"custom_tool_call_output","call_id":"a","output":"[no output]"}]` {
		t.Errorf("%s, %v", raw, err)
	}
}

// Whatever a tool wrote, what goes back is valid and harmless.
func TestHostileOutput(t *testing.T) {
	nasty := "a\x00b\xffc\xed\xa0\x80d\u2028\x1b[2J</script>"
	r := structured(`{"n\u0000":"\ud800 \ud83d\ude00 \udc00\\u0000","x":"`+"\xff"+`"}`,
		api.Content{Type: "text", Text: nasty}, api.Content{Type: "json", JSON: json.RawMessage(`{"broken`)},
		api.Content{Type: "json", JSON: json.RawMessage(`"\u0000\ud800"`)},
		api.Content{Type: "blob", MIMEType: nasty, Data: nil}, api.Content{Type: "resource_link", Name: nasty, URI: nasty},
		api.Content{Type: "unheard of", Text: "shown"})
	r.Message, r.Reason, r.Warnings, r.Timing.Clamped = nasty, api.Reason(nasty), []string{nasty}, true
	for _, p := range providers {
		raw, err := p.Results([]Call{{ID: "a", Tool: "t"}}, []*api.Result{r})
		if err != nil || !json.Valid(raw) || !utf8.Valid(raw) {
			t.Errorf("%s: %v, %q", p.Name(), err, raw)
		}
		for _, bad := range []string{`\ud800`, `:"\u0000`, "\xff", `a\u0000b`} {
			if strings.Contains(strings.ReplaceAll(string(raw), `\\`, ``), bad) {
				t.Errorf("%s has %q: %s", p.Name(), bad, raw)
			}
		}
		if !strings.Contains(string(raw), "shown") {
			t.Errorf("%s: %s", p.Name(), raw)
		}
	}
	want := `{"n` + replacement + `":"` + replacement + ` \ud83d\ude00 ` + replacement + `\\u0000","x":"` + replacement + `"}`
	if got := structuredContent(r); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A broken value costs nothing but itself.
func TestStructuredThatIsNoJSON(t *testing.T) {
	for _, value := range []string{`{"a":`, strings.Repeat(`[`, 10_000), ` `} {
		for _, p := range providers {
			raw, err := p.Results([]Call{{ID: "a", Tool: "t"}}, []*api.Result{structured(value)})
			if err != nil || strings.Contains(string(raw), "structuredContent") {
				t.Errorf("%s: %v, %s", p.Name(), err, raw)
			}
		}
	}
}

func TestLongText(t *testing.T) {
	const size = 1_000_000
	r := timeoutWithPartial()
	r.Content = append(text1("BEGIN"+strings.Repeat("é", size/2)), api.Content{Type: "blob", MIMEType: "image/png", Data: png})
	r.Content = append(r.Content, text1(strings.Repeat("ü", size/2)+"END")...)
	parts := render(r, anthropicBlock)
	if n := sizeOf(parts); n > maxTextBytes+100 || n < maxTextBytes-10 || len(parts) != 3 || parts[1].block == nil {
		t.Fatalf("%d bytes in %d parts", n, len(parts))
	}
	first, last := string(parts[0].text), string(parts[2].text)
	if !strings.HasPrefix(first, r.Message+"\n\nBEGIN") || !strings.HasSuffix(last, "END") || !utf8.ValidString(first+last) {
		t.Errorf("%.400q ... %q", first, last[len(last)-10:])
	}
	var left int
	if _, err := fmt.Sscanf(first[strings.Index(first, "[..."):], "[... %d bytes left out ...]", &left); err != nil {
		t.Fatal(err)
	}
	note := len(fmt.Sprintf("\n[... %d bytes left out ...]\n", left))
	if total := len(r.Message) + 2 + 2*size + len("BEGINEND"); left != total-sizeOf(parts)+note {
		t.Errorf("%d are said to be left out; %d of %d are there", left, sizeOf(parts)-note, total)
	}
	if s := plain(r); len(s) > maxTextBytes+100 || !utf8.ValidString(s) || !strings.HasSuffix(s, "END") {
		t.Errorf("%d bytes of plain text", len(s))
	}
}

// A cut that swallows an earlier one tells of both, whatever a tool's own text
// looks like; what is left of the others is as it was.
func TestCutOfWhatIsCut(t *testing.T) {
	const missing = 999_427
	half := strings.Repeat("y", 500_000) + "\n[... 7 bytes of output are left out here ...]\n" + strings.Repeat("y", 24_000)
	note := api.Content{Type: "text", Text: fmt.Sprintf("[... %d bytes of output are left out here ...]", missing), LeftOutBytes: missing}
	long := ok(text1(half)[0], note, text1(half)[0])
	if got, want := leftOut(t, plain(long)), missing+2*len(half)-maxTextBytes; got != want {
		t.Errorf("content: %d are said to be left out, want %d", got, want)
	}
	stream := timeoutWithPartial()
	stream.Content = nil
	stream.Output.Stdout = api.StreamOutput{Head: half, Tail: half, DroppedBytes: missing}
	stream.Output.Stderr = api.StreamOutput{}
	if got, want := leftOut(t, plain(stream)), missing+len(stream.Message)+2+2*len(half)-maxTextBytes; got != want {
		t.Errorf("stdout: %d are said to be left out, want %d", got, want)
	}
	short := "begin\n" + note.Text + "\n" + half
	got := plain(ok(text1("begin")[0], note, text1(half)[0]))
	rest, whole := strings.CutPrefix(got, short[:1000])
	if want := len(short) - maxTextBytes; !whole || leftOut(t, rest) != want {
		t.Errorf("%d are said to be left out, want %d: %.100q", leftOut(t, rest), want, got)
	}
}

// The note is found where the cut falls into it, too, and is never half there.
func TestCutThroughANote(t *testing.T) {
	const note = "[... 5000 bytes of output are left out here ...]"
	for size := range 2 * len(note) {
		a, b := strings.Repeat("x", size), strings.Repeat("z", 2*len(note)-size)
		w := &writer{}
		w.text(a)
		w.gap(note, 5000)
		w.text(b)
		out := bound(w.parts, w.gaps, 2*len(note))
		s := string(out[0].text)
		if n := strings.Count(s, "["); n != 1 {
			t.Fatalf("%d: %q", size, s)
		}
		if got, want := leftOut(t, s), 5000+2*len(note)-strings.Count(s, "x")-strings.Count(s, "z"); got != want {
			t.Fatalf("%d: %d are said to be left out, want %d: %q", size, got, want, s)
		}
	}
}

// leftOut is the number in the note of a cut.
func leftOut(t *testing.T, s string) (left int) {
	t.Helper()
	_, from, found := strings.Cut(s, "[... ")
	for found && !strings.Contains(from[:min(40, len(from))], "bytes left out ...]") {
		_, from, found = strings.Cut(from, "[... ")
	}
	if _, err := fmt.Sscanf(from, "%d bytes left out ...]", &left); err != nil {
		t.Fatalf("no note: %v in %.200q", err, s)
	}
	return left
}

func TestManyAndLargeBlocks(t *testing.T) {
	large := append(append([]byte{}, png...), make([]byte, maxBlockBytes)...)
	parts := render(ok(api.Content{Type: "blob", MIMEType: "image/png", Data: large}), anthropicBlock)
	if want := fmt.Sprintf("[blob image/png, %d bytes]", len(large)); len(parts) != 1 || string(parts[0].text) != want {
		t.Errorf("%d parts, %.100q", len(parts), parts[0].text)
	}
	links := make([]api.Content, 200_000)
	for i := range links {
		links[i] = api.Content{Type: "resource_link", URI: fmt.Sprint("file:///", i)}
	}
	raw, err := mcp{}.Results([]Call{{ID: "a", Tool: "t"}}, []*api.Result{ok(links...)})
	if err != nil || len(raw) > 2*maxBlockBytes+maxTextBytes {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

// A call whose arguments are not UTF-8 is not made with others; a response whose words are
// not costs no call.
func TestArgumentsThatAreNotUTF8(t *testing.T) {
	for name, response := range map[string]string{
		"anthropic":   `{"content":[{"type":"text","text":"` + "\xff" + `"},{"type":"tool_use","id":"a","name":"t","input":{"path":"` + "\xff" + `"}},{"type":"tool_use","id":"b","name":"t","input":{"path":"\ufffd"}}]}`,
		"openai-chat": `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"t","arguments":"{\"path\":\"` + "\xff" + `\"}"}},{"id":"b","function":{"name":"t","arguments":"{}"}}]}}]}`,
		"mcp":         `[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","_meta":{"x":"` + "\xff" + `"}}},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"t"}}]`,
	} {
		provider, _ := Lookup(name)
		calls, err := provider.Calls([]byte(response))
		if err != nil || len(calls) != 2 || !strings.Contains(calls[0].Problem, "UTF-8") || calls[0].Arguments != nil || calls[1].Problem != "" {
			t.Errorf("%s: %+v, %v", name, calls, err)
		}
	}
}

func TestImageTypes(t *testing.T) {
	for data, want := range map[string]string{
		string(png): "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF87a": "image/gif", "GIF89a...": "image/gif",
		"RIFF....WEBPVP8 ": "image/webp", "RIFF....WAVEfmt ": "", "RIFF": "", "": "", "<svg/>": "",
	} {
		if got := imageType([]byte(data)); got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
}

// Errors quote no more than is useful.
func TestLongNamesInErrors(t *testing.T) {
	id := strings.Repeat("é", 100_000)
	_, err := anthropic{}.Calls(fmt.Appendf(nil, `{"content":[{"type":"tool_use","id":%[1]q,"input":{}},{"type":"tool_use","id":%[1]q,"input":{}}]}`, id))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}

func FuzzBound(f *testing.F) {
	f.Add("héllo", "wörld", "!", uint16(7))
	f.Add("éé", "", "üüü", uint16(6))
	f.Add("ab", "cdefgh", "ij", uint16(4))
	f.Add("", "", "text", uint16(0))
	f.Fuzz(func(t *testing.T, a, b, c string, limit uint16) {
		a, b, c = clean(a), clean(b), clean(c)
		parts := []part{{text: []byte(a)}, {block: 1}, {text: []byte(b)}, {block: 2}, {text: []byte(c)}}
		blocks := 0
		var text []byte
		for _, p := range bound(parts, nil, int(limit)) {
			if p.block != nil {
				blocks++
			}
			text = append(text, p.text...)
		}
		if blocks != 2 || !utf8.Valid(text) || len(text) > int(limit)+60 {
			t.Errorf("limit %d: %d blocks, %q", limit, blocks, text)
		}
	})
}
