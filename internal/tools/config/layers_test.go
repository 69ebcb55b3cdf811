package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

const layered = `timeouts: {tool_call: {default: 20s, max: 2m}}
limits: {memory: 100MiB, pids: 10, cpu: 50%}
kill: {grace: 3s}
classes:
  c: {memory: 200MiB, timeout: 30s, grace: 4s, env: {A: class, B: class}, read: [~/src]}
tools:
  plain: {plugin: bin/search}
  classy: {plugin: bin/search, class: c}
  own:
    plugin: bin/search
    class: c
    memory: 300MiB
    timeout: 40s
    env: {B: own}
    read: [/srv/data]
`

// Each layer overrules those below it, and every value knows where it stands.
func TestLayers(t *testing.T) {
	l := mustLoad(t, layered)
	for _, c := range []struct{ tool, key, text, source string }{
		{"plain", "memory", "100MiB", "/etc/th/toolhost.yaml:2"},
		{"plain", "timeout", "20s", "/etc/th/toolhost.yaml:1"},
		{"plain", "maxTimeout", "2m", "/etc/th/toolhost.yaml:1"},
		{"plain", "minTimeout", "1s", "built-in"},
		{"plain", "output", "1MiB", "built-in"},
		{"plain", "grace", "3s", "/etc/th/toolhost.yaml:3"},
		{"classy", "memory", "200MiB", "class c, /etc/th/toolhost.yaml:5"},
		{"classy", "pids", "10", "/etc/th/toolhost.yaml:2"},
		{"own", "memory", "300MiB", "/etc/th/toolhost.yaml:12"},
		{"own", "timeout", "40s", "/etc/th/toolhost.yaml:13"},
		{"own", "grace", "4s", "class c, /etc/th/toolhost.yaml:5"},
		{"own", "env.A", "class", "class c, /etc/th/toolhost.yaml:5"},
		{"own", "env.B", "own", "/etc/th/toolhost.yaml:14"},
		{"own", "read", "[/srv/data]", "/etc/th/toolhost.yaml:15"},
	} {
		checkValue(t, l, c.tool, c.key, c.text, c.source)
	}
	if l.Config.Limits.MemoryBytes != 100<<20 || l.Config.Grace != 3*time.Second {
		t.Errorf("host-wide: %+v, grace %s", l.Config.Limits, l.Config.Grace)
	}
	own, _ := l.Tool("own")
	if got := own.Request().Env; !reflect.DeepEqual(got, []string{"A=class", "B=own"}) {
		t.Errorf("env is %q", got)
	}
}

func checkValue(t *testing.T, l *Loaded, tool, key, text, source string) {
	t.Helper()
	one, ok := l.Tool(tool)
	v, found := one.Value(key)
	if !ok || !found || v.Text != text || v.Source.String() != source || v.Path != "tools."+tool+"."+key {
		t.Errorf("%s of %s is %q from %q (%s), want %q from %q", key, tool, v.Text, v.Source, v.Path, text, source)
	}
}

// The timeouts go to package budget with their ranks and places.
func TestTimeoutsResolve(t *testing.T) {
	for _, c := range []struct {
		tool, variable string
		timeout        time.Duration
		detail         string
	}{
		{"plain", "", 20 * time.Second, "/etc/th/toolhost.yaml:1"},
		{"classy", "", 30 * time.Second, "/etc/th/toolhost.yaml:5"},
		{"own", "", 40 * time.Second, "/etc/th/toolhost.yaml:13"},
		{"own", "300ms", 300 * time.Millisecond, "TOOLHOST_TIMEOUT"},
	} {
		m := sut(withFile(layered), "TOOLHOST_TIMEOUT="+c.variable)
		o := Options{Path: "/etc/th/toolhost.yaml", Machine: &m}
		l, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		tool, _ := l.Tool(c.tool)
		r := resolve(l, *tool)
		if r.Timeout != c.timeout || r.SourceDetail != c.detail || r.Source != budget.LayerGlobal || r.Clamped {
			t.Errorf("%s with %q: %+v", c.tool, c.variable, r)
		}
		v, _ := tool.Value("timeout")
		if got := v.Source.Position.String(); got != c.detail {
			t.Errorf("the timeout of %s is explained by %q, want %q", c.tool, got, c.detail)
		}
	}
}

// resolve does what the supervisor does with a tool's asks.
func resolve(l *Loaded, tool Tool) budget.Resolution {
	asks := append(append([]budget.Ask{}, l.Config.Timeouts...), tool.Request().Timeouts...)
	return budget.Resolve(l.Config.Profile, asks...)
}

func withFile(text string) map[string]string {
	files := map[string]string{"/etc/th/toolhost.yaml": text}
	for name, content := range world {
		files[name] = content
	}
	return files
}

func TestOnlyAnEntryIsInfinite(t *testing.T) {
	l := mustLoad(t, "tools: {t: {plugin: bin/search, timeout: infinite}}")
	if r := resolve(l, l.Tools[0]); r.Timeout != budget.Infinite || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
	_, err := load(t, "", "TOOLHOST_TIMEOUT=infinite")
	if err == nil || !strings.Contains(err.Error(), "TOOLHOST_TIMEOUT: \"infinite\" may not be infinite here") {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	l := mustLoad(t, layered, "TOOLHOST_MEMORY=1GiB", "TOOLHOST_PIDS=7", "TOOLHOST_CPU=300%", "TOOLHOST_OUTPUT=2MiB", "TOOLHOST_GRACE=9s",
		"TOOLHOST_STATE=st", "TOOLHOST_SOFT=2s", "TOOLHOST_CONFIG=")
	want := supervisor.Limits{MemoryBytes: 1 << 30, Pids: 7, CPUPercent: 300, OutputBytes: 2 << 20}
	for _, tool := range l.Tools {
		if r := tool.Request(); !reflect.DeepEqual(r.Limits, want) || r.Grace != 9*time.Second {
			t.Errorf("%s has %+v, grace %s", tool.Name, r.Limits, r.Grace)
		}
	}
	if !reflect.DeepEqual(l.Config.Limits, want) || l.State != "/work/st" || len(l.Warnings) > 0 {
		t.Errorf("host-wide: %+v, state %s, warnings %v", l.Config.Limits, l.State, l.Warnings)
	}
	checkValue(t, l, "own", "memory", "1GiB", "TOOLHOST_MEMORY")
	if r := resolve(l, l.Tools[2]); r.SoftBudget != 2*time.Second {
		t.Errorf("%+v", r)
	}
}

func TestEveryVariableIsInTheTable(t *testing.T) {
	want := []string{
		"TOOLHOST_CONFIG", "TOOLHOST_CPU", "TOOLHOST_GRACE", "TOOLHOST_LISTEN", "TOOLHOST_MEMORY", "TOOLHOST_MODE", "TOOLHOST_OUTPUT", "TOOLHOST_PIDS",
		"TOOLHOST_SOCKET", "TOOLHOST_SOFT", "TOOLHOST_STATE", "TOOLHOST_TIMEOUT",
		"TOOLHOST_TIMEOUT_APPROVAL", "TOOLHOST_TIMEOUT_CONFIRM", "TOOLHOST_TIMEOUT_DEVICE_CODE", "TOOLHOST_TIMEOUT_HANDOFF", "TOOLHOST_TIMEOUT_HEARTBEAT", "TOOLHOST_TIMEOUT_HITL_ESCALATE", "TOOLHOST_TIMEOUT_MESSAGE_ROUTE",
		"TOOLHOST_TIMEOUT_NEGOTIATION_DECISION", "TOOLHOST_TIMEOUT_NEGOTIATION_OPEN", "TOOLHOST_TIMEOUT_NEGOTIATION_VOTE",
		"TOOLHOST_TIMEOUT_PASSWORD", "TOOLHOST_TIMEOUT_QUESTIONNAIRE", "TOOLHOST_TIMEOUT_REGISTRATION", "TOOLHOST_TIMEOUT_ROOTS", "TOOLHOST_TIMEOUT_SAMPLING", "TOOLHOST_TIMEOUT_TASK_SUBMIT", "TOOLHOST_TIMEOUT_TOOL_CALL",
		"TOOLHOST_TIMEOUT_WORKFLOW_STATUS", "TOOLHOST_TIMEOUT_WORKFLOW_SUBMIT",
	}
	if got := knownVariables(); !reflect.DeepEqual(got, want) {
		t.Errorf("the variables are %q, want %q", got, want)
	}
}

func TestMistypedVariables(t *testing.T) {
	l := mustLoad(t, "", "TOOLHOST_MEMROY=1GiB", "TOOLHOST_PLUGIN=x")
	if len(l.Warnings) != 1 || l.Warnings[0].String() != "TOOLHOST_MEMROY: the variable is not known, and has no effect: did you mean TOOLHOST_MEMORY?" {
		t.Errorf("warnings: %v", l.Warnings)
	}
	l = mustLoad(t, "tools: {t: {plugin: bin/search, args: ['${TOOLHOST_MINE}'], env: [TOOLHOST_PASSED]}}",
		"TOOLHOST_FOO=1", "TOOLHOST_MINE=1", "TOOLHOST_PASSED=1", "TOOLHOST_TEST_X=1", "TOOLHOST_EMPTY=", "FOO=1")
	if len(l.Warnings) != 1 || !strings.HasPrefix(l.Warnings[0].String(), "TOOLHOST_FOO: the variable is not known, and has no effect: unset it; there are TOOLHOST_CONFIG, TOOLHOST_CPU, ") {
		t.Errorf("warnings: %v", l.Warnings)
	}
	_, err := load(t, "limits: {pids: 0}", "TOOLHOST_MEMORY=lots")
	if got := err.Error(); !strings.Contains(got, "\nTOOLHOST_MEMORY: \"lots\" is not a size: write one such as 64MiB, or bytes") {
		t.Errorf("problems:\n%s", got)
	}
}

// A variable's limit is judged as one of the file is.
func TestWrongLimitsOfTheEnvironment(t *testing.T) {
	for variable, want := range map[string]string{
		"TOOLHOST_MEMORY=1MiB":   "TOOLHOST_MEMORY: memory limit 1048576 is too small for any call",
		"TOOLHOST_OUTPUT=100GiB": "TOOLHOST_OUTPUT: limit output: 107374182400 bytes would be held in memory",
		"TOOLHOST_PIDS=5000000":  "TOOLHOST_PIDS: pids limit",
	} {
		if _, err := load(t, "", variable); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", variable, err, want)
		}
	}
}

// The environment can forbid, not permit; flags can do both.
func TestModeOfTheEnvironment(t *testing.T) {
	const text = "tools: {a: {plugin: bin/search, mode: allow}, k: {plugin: bin/search, mode: ask}, d: {plugin: bin/search, mode: deny}, n: {plugin: bin/search}}"
	for value, want := range map[string][]turn.Mode{
		"":      {turn.ModeAllow, turn.ModeAsk, turn.ModeDeny, ""},
		"allow": {turn.ModeAllow, turn.ModeAsk, turn.ModeDeny, ""},
		"ask":   {turn.ModeAsk, turn.ModeAsk, turn.ModeDeny, turn.ModeAsk},
		"deny":  {turn.ModeDeny, turn.ModeDeny, turn.ModeDeny, turn.ModeDeny},
	} {
		l := mustLoad(t, text, "TOOLHOST_MODE="+value)
		for i, tool := range l.Tools {
			if tool.Mode != want[i] {
				t.Errorf("TOOLHOST_MODE=%s makes %s %q, want %q", value, tool.Name, tool.Mode, want[i])
			}
		}
	}
	m := sut(withFile(text), "TOOLHOST_MODE=deny")
	l, err := Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m, Flags: []Flag{{Key: "mode", Values: []string{"allow"}, Name: "--mode"}}})
	if err != nil || l.Tools[2].Mode != turn.ModeAllow {
		t.Errorf("--mode allow: %v", err)
	}
}

func given(key string, values ...string) Flag { return Flag{key, values, "--" + key} }

func TestFlags(t *testing.T) {
	m := sut(withFile(layered), "TOOLHOST_MEMORY=1GiB")
	load := func(flags ...Flag) (*Loaded, error) {
		return Load(Options{Path: "/etc/th/toolhost.yaml", Machine: &m, Flags: flags})
	}
	l, err := load(given("memory", "2GiB"), given("state", "/s"), given("strict", "true"))
	if err != nil {
		t.Fatal(err)
	}
	checkValue(t, l, "own", "memory", "2GiB", "--memory")
	if l.State != "/s" || !l.Tools[0].Sandbox.Strict {
		t.Errorf("state %s, %+v", l.State, l.Tools[0].Sandbox)
	}
	_, err = load(given("memory", "x"), given("nosuch", "x"))
	if got := err.Error(); !strings.Contains(got, "--memory: \"x\" is not a size") || !strings.Contains(got, "--nosuch: bug:") {
		t.Errorf("problems: %s", got)
	}
}

// A limit of all tools can be lifted for one.
func TestLifting(t *testing.T) {
	const entry = "tools: {t: {plugin: bin/search, cpuTime: infinite, outputTotal: infinity}}"
	l := mustLoad(t, entry+"\nlimits: {cpuTime: 5s, outputTotal: 1MiB}")
	if got := l.Tools[0].Limits; got.CPUTime != budget.Infinite || got.OutputTotalBytes != supervisor.Unlimited {
		t.Errorf("over host-wide limits: %+v", got)
	}
	if got := mustLoad(t, entry).Tools[0].Limits; got.CPUTime != 0 || got.OutputTotalBytes != 0 {
		t.Errorf("alone: %+v", got)
	}
}

func TestServerTools(t *testing.T) {
	l := mustLoad(t, `classes: {c: {timeout: 9s, write: [~/src]}}
tools:
  files: {mcp: [s], class: c, title: Server, tools: {read: {readOnly: true}, slow: {timeout: 1m, mode: ask}, kept: {destructive: true}}}
  kept: {mcp: [s], class: c, keep: true, tools: {read: {readOnly: true}}}
`)
	files, _ := l.Tool("files")
	read, slow := files.Of("read"), files.Of("slow")
	if !reflect.DeepEqual(read.Sandbox.Read, []string{"/home/me/src"}) || len(read.Sandbox.Write) > 0 || read.Exclusive() || read.Title != "" {
		t.Errorf("a tool that only reads: %+v", read)
	}
	if r := resolve(l, slow); r.Timeout != time.Minute || slow.Mode != turn.ModeAsk || !slow.Exclusive() || len(slow.Sandbox.Write) != 1 {
		t.Errorf("%+v %+v", r, slow)
	}
	if other := files.Of("other"); other.Name != "files" || other.MCP.Prefix != "files" {
		t.Errorf("a tool that the file does not name: %+v", other)
	}
	kept, _ := l.Tool("kept")
	if one := kept.Of("read"); len(one.Sandbox.Write) != 1 || !one.Request().Keep.Shared || kept.Request().Keep.Shared {
		t.Errorf("a tool of a kept server: %+v", one)
	}
	if v, _ := slow.Value("timeout"); v.Path != "tools.files.tools.slow.timeout" {
		t.Errorf("%+v", v)
	}
}

func TestExclusive(t *testing.T) {
	for text, want := range map[string]bool{
		"plugin: bin/search":                                        false,
		"plugin: bin/search, write: [~/src]":                        true,
		"plugin: bin/search, write: [workspace]":                    false,
		"plugin: bin/search, data: true":                            true,
		"plugin: bin/search, data: true, concurrency: parallel":     false,
		"plugin: bin/search, concurrency: exclusive":                true,
		"plugin: bin/search, write: [~/src], concurrency: parallel": false,
		"mcp: [x]":                 true,
		"mcp: [x], readOnly: true": false,
	} {
		if got := mustLoad(t, "tools: {t: {"+text+"}}").Tools[0].Exclusive(); got != want {
			t.Errorf("%s: exclusive %t, want %t", text, got, want)
		}
	}
}

// Granting paths accepts that they are used with the caller's rights.
func TestGrantsAcceptSharedUID(t *testing.T) {
	l := mustLoad(t, "tools: {a: {plugin: bin/search, read: [~/src], allow: [landlockScope]}, b: {plugin: bin/search}}")
	if got := l.Tools[0].Sandbox.Allow; !reflect.DeepEqual(got, []string{"landlockScope", "sharedUid"}) {
		t.Errorf("allow %q", got)
	}
	if got := l.Tools[1].Sandbox.Allow; len(got) > 0 {
		t.Errorf("allow %q", got)
	}
}

// A variable is passed on under its whole name, however long that is.
func TestLongNamesArePassedOn(t *testing.T) {
	name := strings.Repeat("N", 100)
	for _, text := range []string{"env: [" + name + "]", "env: {" + name + ": null}"} {
		l := mustLoad(t, "tools: {t: {plugin: bin/search, "+text+"}}", name+"=v")
		if got := l.Tools[0].Env; !slices.Equal(got, []string{name + "=v"}) || len(l.Warnings) > 0 {
			t.Errorf("%s: %q, %v", text, got, l.Warnings)
		}
	}
}

// A document may begin with --- behind comments.
func TestHeaderBehindComments(t *testing.T) {
	if l := mustLoad(t, "# one\n# two\n---\nlimits: {pids: 5}\n"); l.Config.Limits.Pids != 5 {
		t.Errorf("%+v", l.Config.Limits)
	}
}

func TestNoFile(t *testing.T) {
	m := sut(world)
	l, err := Load(Options{Machine: &m})
	if err != nil || l.Path != "" || len(l.Tools) > 0 || !reflect.DeepEqual(l.Config, supervisor.Config{}) {
		t.Errorf("%+v, %v", l, err)
	}
	if v, ok := l.Default.Value("memory"); !ok || v.Text != "512MiB" || v.Source.String() != "built-in" {
		t.Errorf("%+v", v)
	}
}

// An entry moves the bounds that its class has set.
func TestEntriesRankAboveClasses(t *testing.T) {
	l := mustLoad(t, "classes: {c: {maxTimeout: 30s}}\ntools: {t: {plugin: bin/search, class: c, timeout: 1m}}")
	if r := resolve(l, l.Tools[0]); r.Timeout != time.Minute || r.Clamped || len(l.Warnings) > 0 {
		t.Errorf("%+v, warnings %v", r, l.Warnings)
	}
}

// A bound of a class or an entry is not called the profile's.
func TestWarnsOfOwnBounds(t *testing.T) {
	for text, want := range map[string]string{
		"classes: {c: {timeout: 1s}}\ntools: {t: {plugin: bin/search, class: c, minTimeout: 2s}}": "timeout 1s asked by global (/etc/th/toolhost.yaml:1) is below the minimum 2s of /etc/th/toolhost.yaml:2: 2s is used",
		"classes: {c: {timeout: 9s}}\ntools: {t: {plugin: bin/search, class: c, maxTimeout: 2s}}": "is above the maximum 2s of /etc/th/toolhost.yaml:2: 2s is used",
	} {
		if l := mustLoad(t, text); len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0].String(), want) {
			t.Errorf("warnings: %v, want %s", l.Warnings, want)
		}
	}
}

func TestWarnsOfClamping(t *testing.T) {
	l := mustLoad(t, "classes: {c: {minTimeout: 1m}}\ntools: {t: {plugin: bin/search, class: c, maxTimeout: 10s}}")
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0].String(), "minimum 1m of tool_call set by global (/etc/th/toolhost.yaml:1) contradicts 10s") {
		t.Errorf("warnings: %v", l.Warnings)
	}
}
