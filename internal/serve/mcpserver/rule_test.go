package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// A rule is named in its question, and an approval for the session that it has
// asked for does not cover another.
func TestApprovalOfARule(t *testing.T) {
	t.Parallel()
	h := says("accept", map[string]any{"always": true})
	rules := func(tool *catalog.Tool) {
		tool.Rule = func(raw json.RawMessage) (turn.Mode, string) {
			var in arguments
			_ = json.Unmarshal(raw, &in)
			return turn.ModeAsk, `ask: {text: "` + in.Text[:1] + `*"}`
		}
	}
	c := connect(t, newServer(t, setup{adjust: rules}), kinds[0], h.options())
	for i, word := range []string{"a1", "a2", "b1", "b2", "a3"} {
		if r := invoke(t, c, params("say", arguments{Text: word})); r.IsError {
			t.Fatal(text(r))
		}
		if want := 1 + min(i/2, 1); h.times() != want {
			t.Errorf("%s: asked %d times, want %d", word, h.times(), want)
		}
	}
	if m := h.asked[1].Message; !strings.Contains(m, `ask: {text: "b*"}`) {
		t.Errorf("asked %q", m)
	}
}
