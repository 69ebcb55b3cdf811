package terminal

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// What a host asks about a tool looks neither like the approval of a call nor like
// the tool's own words, and is answered for once.
func TestQuestionOfAHost(t *testing.T) {
	for kind, want := range map[api.InteractionKind]string{api.KindApproval: "allow? [y/n]", api.KindConfirm: "destroys things: allow? [y/n]", api.KindEscalation: "[y/n]"} {
		q := api.Interaction{Kind: kind, Tool: "pay", Prompt: "Spend 5 €?", Host: true}
		if got := Question(q); got != "About the tool pay: Spend 5 €?\n" {
			t.Errorf("%s: %q", kind, got)
		}
		if got := choices(q, true); got != want {
			t.Errorf("%s: %q", kind, got)
		}
		if _, ok, _ := parse("a", q, true); ok || strings.Contains(explain(q, true), "rest of this turn") {
			t.Errorf("%s is answered for the rest of the turn", kind)
		}
	}
}
