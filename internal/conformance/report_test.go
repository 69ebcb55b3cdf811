package conformance

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

var sampleReport = Report{
	Binary: "/bin/x", SHA256: "ab", Version: "v1", ElapsedMs: 1500,
	Checks: []Check{
		{ID: "handshake", Title: "shakes hands", Finding: passed("in %s", "5ms"), ElapsedMs: 5},
		{ID: "quiet", Title: "prints nothing", Tool: "say", Finding: warned("don't", "it printed %q", "\x1b[2J")},
		{ID: "cancel", Title: "ends", Tool: "say", Finding: failed("end <it>", "still\nrunning \x00 & \x1b[31m")},
		{ID: "flush", Title: "waits", Tool: "say", Finding: skipped("not tried")},
		{ID: "cancel", Title: "ends", Tool: "shout", Finding: failed("end it", "too")},
	},
}

func TestTable(t *testing.T) {
	var b strings.Builder
	for _, c := range sampleReport.Checks {
		if err := WriteCheck(&b, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := sampleReport.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	want := `pass  handshake      -             in 5ms
warn  quiet          say           prints nothing: it printed "\x1b[2J"
      to mend it: don't
FAIL  cancel         say           ends: still running \x00 & \x1b[31m
      to mend it: end <it>
skip  flush          say           not tried
FAIL  cancel         shout         ends: too
      to mend it: end it
/bin/x: 1 passed, 2 failed, 1 warning, 1 not tried, in 1.5s
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	if got := sampleReport.Failed(); !slices.Equal(got, []string{"cancel"}) {
		t.Errorf("failed %q", got)
	}
}

func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := sampleReport.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.Strict = true
	elements := map[string]int{}
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	if elements["testcase"] != 5 || elements["failure"] != 2 || elements["skipped"] != 1 || elements["system-out"] != 1 {
		t.Errorf("elements %v in\n%s", elements, text)
	}
	for _, want := range []string{
		`<?xml version="1.0" encoding="UTF-8"?>`, `tests="5" failures="2" errors="0" skipped="1" time="1.500"`,
		`<testcase classname="tool.say" name="cancel" time="0.000">`, `type="cancel"`, `<property name="sha256" value="ab">`, "to mend it: end &lt;it&gt;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTheTutorialHasEveryRule(t *testing.T) {
	doc, err := os.ReadFile("../../docs/tool-authors.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := append([]rule{ruleHandshake, ruleByHand, ruleDescribe, ruleNames, ruleSchemas, ruleClaims, ruleAlone, ruleReplies, ruleUnknown}, toolRules...)
	for _, r := range rules {
		if !strings.Contains(string(doc), "| `"+r.id+"` | ") {
			t.Errorf("docs/tool-authors.md has no %s", r.id)
		}
	}
	if n := strings.Count(string(doc), "| `"); n != len(rules) {
		t.Errorf("docs/tool-authors.md has %d rules, there are %d", n, len(rules))
	}
}

func TestAReportIsJSON(t *testing.T) {
	raw, err := json.Marshal(&sampleReport)
	if err != nil || !strings.Contains(string(raw), `{"id":"flush","title":"waits","tool":"say","status":"skip","detail":"not tried","elapsedMs":0}`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestStaticChecks(t *testing.T) {
	object := []byte(`{"type":"object","properties":{"ms":{"type":"integer"},"s":{"type":"string"}}}`)
	tool := func(change func(*pluginv1.ToolDescription)) *pluginv1.ToolDescription {
		d := &pluginv1.ToolDescription{Name: "x", Description: "d", InputSchema: object, Annotations: &pluginv1.Annotations{}, Wish: &pluginv1.SandboxWish{}, Timeouts: &pluginv1.TimeoutHints{}}
		change(d)
		return d
	}
	for _, test := range []struct {
		change func(*pluginv1.ToolDescription)
		check  func(*pluginv1.ToolDescription) Finding
		status Status
		detail string
	}{
		{func(d *pluginv1.ToolDescription) {}, checkClaims, Pass, "none"},
		{func(d *pluginv1.ToolDescription) { *d = pluginv1.ToolDescription{} }, checkClaims, Pass, "none"},
		{func(d *pluginv1.ToolDescription) {
			d.Annotations = &pluginv1.Annotations{ReadOnly: new(true), Idempotent: new(true), OpenWorld: new(true)}
			d.Concurrency = pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE
		}, checkClaims, Pass, "read-only, idempotent, open-world, exclusive"},
		{func(d *pluginv1.ToolDescription) {
			d.Annotations.Destructive, d.Annotations.OpenWorld = new(false), new(false)
		}, checkClaims, Pass, "additive, closed-world"},
		{func(d *pluginv1.ToolDescription) { d.Annotations.ReadOnly, d.Wish.Write = new(true), []string{"/x"} }, checkClaims, Fail, "wishes to write /x"},
		{func(d *pluginv1.ToolDescription) { d.Timeouts.GapMs = -1 }, checkClaims, Fail, "negative"},
		{func(d *pluginv1.ToolDescription) { d.Timeouts.TimeoutMs, d.Timeouts.SoftBudgetMs = 5, 6 }, checkClaims, Fail, "over its timeout"},
		{func(d *pluginv1.ToolDescription) { d.Wish.Pids = -1 }, checkClaims, Fail, "wishes for is negative"},
		{func(d *pluginv1.ToolDescription) { d.Wish.Read = []string{"src"} }, checkClaims, Warn, `"src"`},
		{func(d *pluginv1.ToolDescription) { d.Wish.Read = []string{"~/src", "/x"} }, checkClaims, Pass, ""},
		{func(d *pluginv1.ToolDescription) { d.Wish.Reach = []string{"api.example.com:443", "10.0.0.0/8:22"} }, checkClaims, Pass, ""},
		{func(d *pluginv1.ToolDescription) { d.Wish.Reach = []string{"https://api.example.com"} }, checkClaims, Fail, "is a URL"},
		{func(d *pluginv1.ToolDescription) { d.TimeoutArgument = "ms" }, checkClaims, Pass, ""},
		{func(d *pluginv1.ToolDescription) { d.TimeoutArgument = "s" }, checkClaims, Fail, `"s" is not an integer`},
		{func(d *pluginv1.ToolDescription) {}, checkSchemas, Pass, "no output schema"},
		{func(d *pluginv1.ToolDescription) { d.OutputSchema = object }, checkSchemas, Pass, "input and output"},
		{func(d *pluginv1.ToolDescription) { d.OutputSchema = []byte(`{"type":"string"}`) }, checkSchemas, Warn, "its type is string"},
		{func(d *pluginv1.ToolDescription) { d.InputSchema = nil }, checkSchemas, Fail, "it is missing"},
		{func(d *pluginv1.ToolDescription) { d.InputSchema = []byte(`[]`) }, checkSchemas, Fail, "no JSON object"},
		{func(d *pluginv1.ToolDescription) { d.InputSchema = []byte(`{}`) }, checkSchemas, Fail, "not object"},
		{func(d *pluginv1.ToolDescription) { d.InputSchema = []byte(`{"type":"object","$ref":"#/nowhere"}`) }, checkSchemas, Fail, "input schema"},
		{func(d *pluginv1.ToolDescription) {
			d.InputSchema = []byte(`{"type":"object","description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`)
		}, checkSchemas, Fail, "at most 262144"},
	} {
		f := test.check(tool(test.change))
		if f.Status != test.status || !strings.Contains(f.Detail, test.detail) || (f.Fix == "") != (f.Status == Pass) {
			t.Errorf("%+v, want %s %q", f, test.status, test.detail)
		}
	}
}
