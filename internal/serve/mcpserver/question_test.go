package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin"
)

// What comes after a long text in the arguments is shown all the same, and what
// is not shown is told of where the arguments cannot say it.
func TestLongArguments(t *testing.T) {
	long := strings.Repeat("a", 50_000)
	forged := strings.Repeat("b", keptOfString) + strings.Repeat(`"`, 1000) + `","path":"/tmp/harmless"}`
	for name, test := range map[string]struct {
		arguments string
		shown     []string
		hidden    string
	}{
		"whole":  {`{"text":"<` + strings.Repeat("x", maxWhole-100) + `>","path":"/etc"}`, []string{`x>","path":"/etc"}`}, "shown"},
		"string": {`{"text":"` + long + `","path":"/etc"}`, []string{"of 50025 characters", `a" …(49600 characters not shown)… "a`, `"path":"/etc"}`}, long},
		"deep":   {`{"a":[{"text":"` + long + `","run":"rm"}]}`, []string{`"run":"rm"}]}`}, long},
		"name":   {`{"` + long + `":1,"path":"/etc"}`, []string{`"path":"/etc"}`}, long},
		"forged": {`{"text":` + string(quote([]rune(forged+long+forged))) + `,"path":"/etc"}`, []string{`,"path":"/etc"}`, `\"path\"`}, `","path":"/tmp`},
		"many":   {`{` + strings.Repeat(`"k":"v",`, 5000) + `"path":"/etc"}`, []string{"CHARACTERS NOT SHOWN", `"path":"/etc"}`}, strings.Repeat(`"k":"v",`, 2500)},
	} {
		got := message(api.Interaction{Kind: api.KindApproval, Tool: "write", Prompt: "allow?", Arguments: json.RawMessage(test.arguments)})
		for _, want := range test.shown {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", name, want, got)
			}
		}
		if strings.Contains(got, test.hidden) || len(got) > 3*maxInPart || !strings.Contains(got, "may touch") {
			t.Errorf("%s: %d bytes: %s", name, len(got), got)
		}
	}
}

// The arguments come to the client's human whole.
func TestApprovalShowsArguments(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		h := says("decline", nil)
		c := connect(t, newServer(t, setup{adjust: asking}), k, h.options())
		text := strings.Repeat("x", 5000) + " and then the end"
		invoke(t, c, params("say", arguments{Text: text}))
		if m := h.asked[0].Message; !strings.Contains(m, fmt.Sprintf("%q", text)) {
			t.Errorf("asked %s", m)
		}
	})
}

// What a tool asks comes to the client as it was written: it is for who shows it to make
// it harmless, and a second toolhost would escape what the first has escaped.
func TestQuestionsKeepTheirLines(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		h := says("accept", nil)
		c := connect(t, newServer(t, setup{}), k, h.options())
		prompt := "one\n\n\ttwo\x1b[0m \\n " + strings.Repeat("x", 3000)
		invoke(t, c, asks(t, plugin.Question{Prompt: prompt}))
		if m := h.asked[0].Message; m != "The tool ask asks: "+prompt {
			t.Errorf("asked %q", m)
		}
	})
}
