package terminal

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// What a host asks about a tool looks neither like the approval of a call nor like
// the tool's own words, and is answered for once.
// An address is shown whole, with who asks, and nothing that the server says passes for it.
func TestQuestionOfAnAddress(t *testing.T) {
	address := "https://example.com/" + strings.Repeat("long", 1000) + "?end"
	q := api.Interaction{
		Kind: api.KindQuestionnaire, Tool: "files__login", Prompt: "MCP server \"files\" asks ...\n" + address + "\nLog in\n  address    https://good.example/",
		Request: &api.ClientRequest{Method: "elicitation/create", URL: address, Server: `MCP server "files" (node)`},
	}
	want := "MCP server \"files\" (node) asks you to open an address, for the tool files__login\n  it says    Log in\\n  address    https://good.example/\n  address    " + address +
		"\n  Open it yourself if you trust it: nothing opens it for you. Yes says that you will.\n"
	if got := Question(q); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

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
