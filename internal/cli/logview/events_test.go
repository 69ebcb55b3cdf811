package logview

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// A time line tells what was asked, and for how long somebody could answer.
func TestTelling(t *testing.T) {
	for want, e := range map[string]api.Event{
		"approval": {Kind: api.AuditRequested, Interaction: api.KindApproval},
		"approval  headless  true  nobody": {
			Kind: api.AuditRequested, Interaction: api.KindApproval, Outcome: api.OutcomeHeadless, Default: json.RawMessage("true"), By: "nobody",
		},
		"confirm  pending true":  {Kind: api.EventInteractionPending, Interaction: api.KindConfirm, Pending: new(true)},
		"confirm  pending false": {Kind: api.EventInteractionPending, Interaction: api.KindConfirm, Pending: new(false)},
		"questionnaire  timeout 2m0s  Which one?\nSay it.": {
			Kind: api.EventInteractionRequest, Interaction: api.KindQuestionnaire, TimeoutMs: 120_000, Prompt: "Which one?\nSay it.",
		},
		"timeout 1.5s":              {Kind: "tool_timeout", TimeoutMs: 1500},
		"policy  modeGate":          {Kind: api.AuditDenied, Reason: "policy", Decider: "modeGate"},
		"timeout  deadline  [TIME]": {Kind: "tool_failed", Status: "timeout", Reason: "deadline", Display: "[TIME]"},
		"":                          {Kind: "tool_queued"},
	} {
		if got := telling(e); got != want {
			t.Errorf("%s tells %q, want %q", e.Kind, got, want)
		}
	}
}
