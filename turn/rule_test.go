package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// asked answers yes, for the rest of the turn, and remembers what it was asked.
type asked struct{ list *[]api.Interaction }

func (a asked) Ask(_ context.Context, i api.Interaction) (api.Answer, error) {
	*a.list = append(*a.list, i)
	return api.Answer{Approve: true, Always: true}, nil
}

// byArgument has a rule for each call by what it says.
func byArgument(arguments json.RawMessage) (Mode, string) {
	var in fakeArgs
	_ = json.Unmarshal(arguments, &in)
	switch in.Say {
	case "never":
		return ModeDeny, "deny: {say: never}"
	case "mistyped":
		return "Ask", "Ask: {say: mistyped}"
	case "first", "second":
		return ModeAsk, "ask: {say: " + in.Say + "}"
	}
	return "", ""
}

func saying(id, tool, word string) Call {
	raw, _ := json.Marshal(fakeArgs{Ms: 1, Say: word})
	return Call{ID: id, Tool: tool, Arguments: raw}
}

// Rules make a mode stricter, and never looser; an approval that one has asked
// for does not cover another.
func TestRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []api.Interaction
		tools := map[string]Tool{
			"ruled":  {Name: "ruled", Mode: ModeAllow, Rule: byArgument, Repeatable: true},
			"asks":   {Name: "asks", Mode: ModeAsk, Rule: byArgument, Repeatable: true},
			"closed": {Name: "closed", Mode: ModeDeny, Rule: byArgument},
			"typo":   {Name: "typo", Mode: "Deny", Repeatable: true},
			"later": {Name: "later", Describe: func(context.Context) (*Tool, *api.Result) {
				return &Tool{Name: "later", Rule: byArgument}, nil
			}},
		}
		w := newWorld()
		w.Manager = New(Config{
			Start: w.fakes.start, Journal: w.journal, Interactor: asked{&list},
			Tool: func(name string) (Tool, bool) { tool, ok := tools[name]; return tool, ok },
		})
		turn := w.begin(t, Spec{})
		defer turn.End()
		rules := func() (all []string) {
			for _, i := range list {
				all = append(all, i.Tool+" "+i.Rule)
				if i.Rule != "" && !strings.Contains(i.Prompt, i.Rule) {
					t.Errorf("asked %q", i.Prompt)
				}
			}
			list = nil
			return all
		}
		one := func(tool, word, status string, asked ...string) {
			t.Helper()
			r := run(t, turn, saying(tool+word+status, tool, word))[0]
			if got := rules(); string(r.Status) != status || !slices.Equal(got, asked) {
				t.Errorf("%s %s: %s, asked %q: %s", tool, word, r.Status, got, r.Message)
			}
			if word == "never" && tool != "closed" && (r.Reason != "policy" || !strings.Contains(r.Message, "deny: {say: never}")) {
				t.Errorf("%s: %s", r.Reason, r.Message)
			}
		}
		one("ruled", "free", "ok")
		one("ruled", "never", "denied")
		one("ruled", "first", "ok", "ruled ask: {say: first}")
		one("ruled", "first", "ok")
		one("ruled", "second", "ok", "ruled ask: {say: second}")
		one("asks", "never", "denied")
		one("asks", "free", "ok", "asks ")
		one("asks", "first", "ok", "asks ask: {say: first}")
		one("closed", "free", "denied")
		one("ruled", "mistyped", "denied")
		one("typo", "free", "denied")
		if r := run(t, turn, saying("typo", "typo", "free"))[0]; !strings.Contains(r.Message, `its mode "Deny" is unknown: the host must give it allow, ask or deny`) {
			t.Error(r.Message)
		}
		one("later", "never", "denied")
		one("later", "first", "ok", "later ask: {say: first}")
		headless := w.begin(t, Spec{Headless: true})
		defer headless.End()
		want(t, run(t, headless, saying("a", "ruled", "first"), saying("b", "ruled", "free")), "denied/headless", "ok")
	})
}
