package daemon

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// waitOf calls a tool that is approved first, denies it, and gives how long it would
// have been waited for.
func (w *world) waitOf(spec api.TurnSpec, tool string) int64 {
	w.t.Helper()
	begun, err := w.client.Begin(wait.Context(w.t), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan outcome, 1)
	go func() { done <- w.run(begun.TurnID, api.Call{ID: "c", Tool: tool}) }()
	var pending []api.Interaction
	wait.Until(w.t, "the question", func() bool {
		info, err := w.client.Turn(wait.Context(w.t), begun.TurnID)
		pending = info.PendingInteractions
		return err == nil && len(pending) > 0
	})
	if err := w.client.Answer(wait.Context(w.t), pending[0].ID, api.Answer{}); err != nil {
		w.t.Fatal(err)
	}
	if o := w.outcome(done); o.err != nil || o.result.Reason != api.ReasonUser {
		w.t.Errorf("%s: %+v", tool, o)
	}
	return pending[0].TimeoutMs
}

// How long humans are waited for is the configuration's, the tool's and the turn's
// to say.
func TestWaitsForHumans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `  asked: {command: [echo, a], mode: ask}
  quick: {command: [echo, a], mode: ask, timeouts: {approval: {default: 30s, max: 2m}}}
  fatal: {command: [echo, a], destructive: true}
timeouts: {approval: 90s, confirm: {default: 40s}}
`)
	d := w.daemon()
	own := api.TurnSpec{InteractionTimeoutsMs: map[string]int64{"approval": 600_000, "confirm": 7000}}
	for tool, want := range map[string][2]int64{"asked": {90_000, 600_000}, "quick": {30_000, 120_000}, "fatal": {40_000, 7000}} {
		if got := [2]int64{w.waitOf(api.TurnSpec{}, tool), w.waitOf(own, tool)}; got != want {
			t.Errorf("%s: waited for %d ms, want %d", tool, got, want)
		}
	}
	w.configure("  asked: {command: [echo, a], mode: ask}\ntimeouts: {approval: 45s}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if got := w.waitOf(api.TurnSpec{}, "asked"); got != 45_000 {
		t.Errorf("after the reload: %d ms", got)
	}
	for _, wrong := range []map[string]int64{{"approval": 0}, {"approval": -1}, {"quiz": 1000}, {"hitl_escalate": 60_000}} {
		_, err := w.client.Begin(wait.Context(t), api.TurnSpec{InteractionTimeoutsMs: wrong})
		if err == nil || !strings.Contains(err.Error(), "interactionTimeoutsMs") {
			t.Errorf("%v, want status %d: %v", wrong, http.StatusBadRequest, err)
		}
	}
}
