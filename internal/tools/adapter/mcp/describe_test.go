package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

const plainTool = `{"name":"plain","inputSchema":{"type":"object"}}`

var scripts = map[string]func(*peer){
	// Lists of tools.
	"good list": func(p *peer) {
		p.tools(`{"name":"read","title":"Read","description":"Reads.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"a":{}}},
			"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":true,"destructiveHint":false}},
			{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"title":"Wipe it","destructiveHint":true,"openWorldHint":false}},
			{"name":"admin.tools/x","inputSchema":{"type":"object"}},
			{"name":"edit","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}},
			{"name":"null","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":null}}`)
	},
	"bad list": func(p *peer) {
		p.tools(`{"name":"first","inputSchema":{"type":"object"}}, null, 5, "x", {"name":7,"inputSchema":{"type":"object"}},
			{"name":"first","inputSchema":{"type":"object"}},
			{"name":"","inputSchema":{"type":"object"}},
			{"name":"list","inputSchema":[]}, {"name":"hint","annotations":{"readOnlyHint":"yes"}}, {"name":"array","inputSchema":{"type":"array"}},
			{"name":"elsewhere","inputSchema":{"type":"object","$ref":"http://x/y"}},
			{"name":"loop","inputSchema":{"type":"object","allOf":[{"$ref":"#"}]}},
			{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},
			{"name":"output","inputSchema":{"type":"object"},"outputSchema":{"$ref":"http://x/y"}},
			{"name":"none"}, {"name":"null","inputSchema":null}, {"name":"untyped","inputSchema":{"properties":{"type":{"type":"string"}}}},
			{"name":"javascript","inputSchema":{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!x)","maximum":9007199254740993}}}},
			{"name":"last","inputSchema":{"type":"object"}}`)
	},
	"only bad tools": func(p *peer) { p.tools(`{"name":"list","inputSchema":[]}`) },
	"no tools":       func(p *peer) { p.tools("") },
	"pages": func(p *peer) {
		p.initialize()
		p.answer(p.await("tools/list"), `{"tools":[{"name":"one","inputSchema":{"type":"object"}}],"nextCursor":"2"}`)
		m := p.await("tools/list")
		p.answer(m, fmt.Sprintf(`{"tools":[{"name":"page_%s","inputSchema":{"type":"object"}}],"nextCursor":"%s"}`, m.param("cursor"), m.param("cursor")))
		p.drain()
	},
	"endless pages": func(p *peer) {
		p.initialize()
		for i := 0; ; i++ {
			p.answer(p.await("tools/list"), fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, i))
		}
	},
	"too many tools": func(p *peer) {
		var list []string
		for i := range maxTools + 10 {
			list = append(list, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		}
		p.tools(strings.Join(list, ","))
	},
	"too large a list": func(p *peer) {
		p.tools(plainTool + `,{"name":"large","inputSchema":{"type":"object"},"description":"` + big(maxListBytes) + `"}`)
	},
	"no list":       func(p *peer) { p.initialize(); p.await("tools/list"); p.drain() },
	"refuses list":  func(p *peer) { p.initialize(); p.refuse(p.await("tools/list"), -32601, "no such method"); p.drain() },
	"odd list":      func(p *peer) { p.initialize(); p.answer(p.await("tools/list"), `{"tools":{}}`); p.drain() },
	"dies in list":  func(p *peer) { p.initialize(); p.await("tools/list"); os.Exit(9) },
	"prints a logo": func(p *peer) { fmt.Print("Welcome!\n{\"level\":\"info\"}\n[1,2]\n\n"); p.tools(plainTool) },
	"a batch": func(p *peer) {
		m := p.await("initialize")
		p.say(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}},{"jsonrpc":"2.0","id":%s,"result":%s}]`, m.ID, initialized)
		p.answer(p.await("tools/list"), `{"tools":[`+plainTool+`]}`)
		p.drain()
	},
	// Starts that fail.
	"dies at start": func(*peer) {
		fmt.Fprintln(os.Stderr, "Error: Cannot find module 'x'\n    at y.js\n\nNode.js v20")
		os.Exit(3)
	},
	"hangs at start": func(*peer) { fmt.Fprintln(os.Stderr, "connecting to the database"); hang() },
	"old version": func(p *peer) {
		p.answer(p.await("initialize"), strings.Replace(initialized, "2025-11-25", "1999-01-01", 1))
		p.drain()
	},
	"refuses":           func(p *peer) { p.refuse(p.await("initialize"), -32000, "no licence"); p.drain() },
	"only garbage":      func(*peer) { fmt.Print(strings.Repeat("garbage\n", 10*maxStrays)); hang() },
	"a huge message":    func(*peer) { fmt.Print(big(maxMessageBytes + 1<<20)); hang() },
	"closes its stdout": func(*peer) { _ = os.Stdout.Close(); hang() },
	"odd initialize":    func(p *peer) { p.answer(p.await("initialize"), `"hello"`); p.drain() },
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	l, err := listTools(t, server(t, "good list"))
	if err != nil || len(l.Tools) != 5 || l.Version != "3.2.1" || len(l.Warnings) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	read, wipe, dotted := l.Tools[0].Describe(), l.Tools[1].Describe(), l.Tools[2].Describe()
	if read.GetName() != "read" || read.GetTitle() != "Read" || read.GetDescription() != "Reads." {
		t.Errorf("read: %v", read)
	}
	if got, want := string(read.GetInputSchema()), `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"a":{}}}`; got != want {
		t.Errorf("input schema %s, want it as it was: %s", got, want)
	}
	if string(read.GetOutputSchema()) != `{"type":"object"}` || read.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE {
		t.Errorf("read: %v", read)
	}
	if a := read.GetAnnotations(); !a.GetReadOnly() || !a.GetIdempotent() || !a.GetOpenWorld() || a.Destructive == nil || a.GetDestructive() {
		t.Errorf("read claims %v", a)
	}
	if wipe.GetTitle() != "Wipe it" || wipe.GetConcurrency() != pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE {
		t.Errorf("wipe: %v", wipe)
	}
	if a := wipe.GetAnnotations(); !a.GetDestructive() || a.ReadOnly != nil || a.Idempotent != nil || a.OpenWorld == nil || a.GetOpenWorld() {
		t.Errorf("wipe claims %v", a)
	}
	if dotted.GetName() != "admin_tools_x_4ce2045fbb" || dotted.GetTitle() != "admin.tools/x" || dotted.GetAnnotations().Destructive != nil {
		t.Errorf("dotted: %v", dotted)
	}
	// No hint is not a claim; a hint that it changes things is one.
	for i, want := range []bool{false, true, false, true, false} {
		if got := l.Tools[i].Describe(); got.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE != want {
			t.Errorf("%s claims to be exclusive: %v, want %v", got.GetName(), !want, want)
		}
	}
}

// One tool that is wrong costs no other.
func TestBadToolsAreLeftOutWithAWarning(t *testing.T) {
	t.Parallel()
	l, err := listTools(t, server(t, "bad list"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	schemas := map[string]string{}
	for _, tool := range l.Tools {
		names = append(names, tool.Name())
		schemas[tool.Name()] = string(tool.Describe().GetInputSchema())
	}
	if got, want := strings.Join(names, " "), "first output none null untyped javascript last"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"none": `{"type":"object"}`, "null": `{"type":"object"}`,
		"untyped":    `{"properties":{"type":{"type":"string"}},"type":"object"}`,
		"javascript": `{"properties":{"mail":{"maximum":9007199254740993,"type":"string"}},"type":"object"}`,
	} {
		if schemas[name] != want {
			t.Errorf("schema of %s: %s, want %s", name, schemas[name], want)
		}
	}
	warnings := strings.Join(l.Warnings, "\n")
	for _, part := range []string{
		"it has no name", `"task" is left out`,
		"a number where name has no place for one", `"hint" is left out: it has a string where annotations.readOnlyHint has no place for one`, `"first" is left out: "first" has its name`, `"list" is left out`, `"array" is left out`, `"elsewhere" is left out`,
		`"loop" is left out`, `"output" goes without its output schema`, `"javascript": 1 patterns`,
	} {
		if !strings.Contains(warnings, part) {
			t.Errorf("no warning has %q:\n%s", part, warnings)
		}
	}
}

func TestTheListIsBounded(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]struct {
		tools    int
		warnings string
	}{
		"pages":            {2, ""},
		"too many tools":   {maxTools, "after the first 1024"},
		"too large a list": {1, "after the first 1"},
		"prints a logo":    {1, ""},
		"a batch":          {1, ""},
	} {
		l, err := listTools(t, server(t, role))
		warnings := strings.Join(l.Warnings, "\n")
		if err != nil || len(l.Tools) != want.tools || (warnings == "") != (want.warnings == "") || !strings.Contains(warnings, want.warnings) {
			t.Errorf("%s: %d tools, warnings %q, %v", role, len(l.Tools), warnings, err)
		}
	}
}

// Every start that fails ends in a failure that says why, and leaves nothing.
func TestAServerThatCannotBeDescribed(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	brief := Options{StartTimeout: 300 * time.Millisecond}
	for _, test := range []struct {
		options Options
		argv    []string
		kind    plugin.FailureKind
		want    string
	}{
		{Options{}, argv("dies at start"), plugin.StartFailed, `MCP server "test" exited with status 3, before it had answered initialize; it wrote to stderr: Error: Cannot find module 'x'` + "\n"},
		{brief, argv("hangs at start"), plugin.StartFailed, "has not answered initialize within 300ms: a higher startTimeout gives it more"},
		{Options{}, argv("old version"), plugin.StartFailed, `unsupported protocol version: "1999-01-01"`},
		{Options{}, argv("refuses"), plugin.StartFailed, "no licence"},
		{Options{}, argv("only garbage"), plugin.StartFailed, "not JSON-RPC"},
		{Options{}, argv("a huge message"), plugin.StartFailed, "more than 16777216 bytes"},
		{Options{}, argv("closes its stdout"), plugin.StartFailed, "has closed its stdout and goes on running, before"},
		{Options{}, argv("odd initialize"), plugin.StartFailed, "cannot be initialized"},
		{Options{}, argv("no tools"), plugin.StartFailed, "offers no tools"},
		{Options{}, argv("only bad tools"), plugin.StartFailed, "offers no tools that can be used: tool \"list\""},
		{Options{}, argv("endless pages"), plugin.BrokeProtocol, "more than 256 pages"},
		{Options{}, argv("refuses list"), plugin.StartFailed, "no such method"},
		{Options{}, argv("odd list"), plugin.BrokeProtocol, "form that MCP does not have"},
		{Options{}, argv("dies in list"), plugin.Crashed, "exited with status 9"},
		{Options{}, []string{"/no/such/server"}, plugin.Missing, `no command "/no/such/server"`},
		{Options{}, []string{"no-such-server"}, plugin.Missing, `no command "no-such-server"`},
		{Options{}, []string{script}, plugin.Missing, `no command`},
		{Options{}, []string{text}, plugin.NotExecutable, "permission denied"},
		{Options{}, nil, plugin.StartFailed, "its command is empty"},
	} {
		t.Run(strings.Join(test.argv, " "), func(t *testing.T) {
			a := startAdapter(t, test.options, test.argv...)
			_, err := listTools(t, a)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if failure, ok := errors.AsType[*plugin.Failure](err); !ok || failure.Kind != test.kind {
				t.Errorf("failure %+v", failure)
			}
		})
	}
}

// The list has a bound of its own.
func TestAListThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s, err := server(t, "no list").session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.options.StartTimeout = 100 * time.Millisecond
	if _, err := s.list(t.Context()); err == nil || !strings.Contains(err.Error(), "has not answered tools/list within 100ms: a higher startTimeout gives it more") {
		t.Errorf("error %v", err)
	}
}

// resources has these besides tools, and no templates.
func resources(listTools func(*peer, message)) func(*peer) {
	return func(p *peer) {
		for {
			switch m := p.next(); m.Method {
			case "initialize":
				p.answer(m, `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{},"resources":{},"prompts":{}}}`)
			case "tools/list":
				listTools(p, m)
			case "prompts/list":
				p.refuse(m, -32603, "no connection")
			case "resources/list":
				p.answer(m, `{"resources":[{"uri":"x://1","name":"one"}]}`)
			case "resources/templates/list":
				p.refuse(m, -32601, "Method not found")
			}
		}
	}
}

func init() {
	scripts["has resources and no templates"] = resources(func(p *peer, m message) { p.answer(m, `{"tools":[]}`) })
	scripts["has resources and knows no tools"] = resources(func(p *peer, m message) { p.refuse(m, -32601, "Method not found") })
	scripts["has resources and cannot list tools"] = resources(func(p *peer, m message) { p.refuse(m, -32603, "no backend") })
	scripts["has resources and a circle of tools"] = resources(func(p *peer, m message) {
		next := map[string]string{"1": "2"}
		p.answer(m, fmt.Sprintf(`{"tools":[],"nextCursor":%q}`, cmp.Or(next[m.param("cursor")], "1")))
	})
}

// A list that a server does not know is one that it has not: no warning is due. One that it
// knows and does not give has one. Tools that it cannot give now may be there later.
func TestAListThatIsUnknown(t *testing.T) {
	t.Parallel()
	const prompts = "prompts/list is not answered: no connection"
	for role, want := range map[string]string{
		"has resources and no templates":      prompts,
		"has resources and knows no tools":    prompts,
		"has resources and a circle of tools": "tools/list: what comes after the first 0 is left out: at most 256 pages are taken\n" + prompts,
	} {
		l, err := listTools(t, server(t, role))
		if got := strings.Join(l.Warnings, "\n"); err != nil || got != want || len(l.Server.GetResources()) != 1 {
			t.Errorf("%s: warnings %q, %v", role, got, err)
		}
	}
	if _, err := listTools(t, server(t, "has resources and cannot list tools")); err == nil || !strings.Contains(err.Error(), "does not list its tools: no backend") {
		t.Errorf("%v", err)
	}
}

// Of prompts, resources and templates of one name the first stays: what is pinned goes by
// the name.
func TestOffersOfOneName(t *testing.T) {
	t.Parallel()
	l, err := listTools(t, server(t, "lists things twice"))
	if err != nil {
		t.Fatal(err)
	}
	o := l.Server
	if got := fmt.Sprintf("%s %s %s", o.GetPrompts(), o.GetResources(), o.GetTemplates()); got != `[{"name":"a","description":"x"} {"name":"b"}] [{"uri":"x:1","name":"one"}] [{"uriTemplate":"x:{a}","name":"t"}]` {
		t.Error(got)
	}
	want := []string{`prompts/list: another entry of name "a" is left out`, `resources/list: another entry of uri "x:1" is left out`, `resources/templates/list: another entry of uriTemplate "x:{a}" is left out`}
	if !slices.Equal(l.Warnings, want) {
		t.Errorf("%q", l.Warnings)
	}
}

func init() {
	scripts["lists things twice"] = func(p *peer) {
		for {
			switch m := p.next(); m.Method {
			case "initialize":
				p.answer(m, `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"resources":{},"prompts":{}}}`)
			case "prompts/list":
				p.answer(m, `{"prompts":[{"name":"a","description":"x"},{"name":"b"},{"name":"a","description":"y"}]}`)
			case "resources/list":
				p.answer(m, `{"resources":[{"uri":"x:1","name":"one"},{"uri":"x:1","name":"two"}]}`)
			case "resources/templates/list":
				p.answer(m, `{"resourceTemplates":[{"uriTemplate":"x:{a}","name":"t"},{"uriTemplate":"x:{a}","name":"u"}]}`)
			}
		}
	}
}
