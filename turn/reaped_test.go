package turn

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

// ended is a call that is over, with processes that are gone or not.
type ended struct {
	over
	gone chan struct{}
}

func (e ended) Gone() <-chan struct{} { return e.gone }

func (ended) Current() (none cgroup.Current, ok bool) { return none, false }

// Whoever is told that processes had to be killed is told once that they are gone,
// and when that is: behind the call's end, and before the turn's.
func TestKilledProcessesAreReaped(t *testing.T) {
	for name, test := range map[string]struct {
		kill   api.Kill
		dies   bool // what survived, while the turn goes on
		reaped []int
	}{
		"nothing was killed":     {api.Kill{Stage: "none", Reaped: 1}, true, nil},
		"killed":                 {api.Kill{Stage: "kill", Reaped: 3}, true, []int{3}},
		"ended by SIGTERM":       {api.Kill{Stage: "term", Reaped: 1}, true, []int{1}},
		"dies later":             {api.Kill{Stage: "kill", Reaped: 2, Survivors: 1}, true, []int{3}},
		"left behind, dies":      {api.Kill{Stage: "none", Reaped: 2, Survivors: 1}, true, []int{3}},
		"survives the turn, too": {api.Kill{Stage: "kill", Reaped: 2, Survivors: 1}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { reaping(t, test.kill, test.dies, test.reaped) })
		})
	}
}

func reaping(t *testing.T, kill api.Kill, dies bool, want []int) {
	result := supervisor.Verdict{Status: api.StatusTimeout}.Result()
	result.Kill = kill
	call := ended{over{result}, make(chan struct{})}
	w := newWorld()
	w.config.Start = func(context.Context, supervisor.Request) Running { return call }
	turn := w.begin(t, Spec{})
	if _, err := turn.Run(t.Context(), []Call{callOf("a", "work", 1)}); err != nil {
		t.Fatal(err)
	}
	if dies {
		close(call.gone)
	}
	synctest.Wait()
	turn.End()
	var kinds []api.EventKind
	var reaped []int
	for _, r := range w.journal.list() {
		if kinds = append(kinds, r.Kind); r.Kind == api.EventReaped {
			reaped = append(reaped, r.Reaped)
			if r.CallID != "a" || r.Tool != "work" || !slices.Contains(kinds, api.EventFailed) {
				t.Errorf("%s of %q (%s) after %q", r.Kind, r.CallID, r.Tool, kinds)
			}
		}
	}
	if !slices.Equal(reaped, want) || kinds[len(kinds)-1] != api.EventTurnEnd {
		t.Errorf("reaped %v, want %v, among %q", reaped, want, kinds)
	}
}
