package turn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// TestInterleavings plays random turns against what must hold in every one: one
// result for each call and in order, exclusive calls alone, events in legal
// order and numbered without gaps, nothing after turn_end, no interaction left
// open. TOOLHOST_TURN_SEEDS is how many are played.
func TestInterleavings(t *testing.T) {
	seeds := 500
	if os.Getenv("TOOLHOST_SOAK_RUNS") != "" {
		seeds = 2000
	}
	if n, err := strconv.Atoi(os.Getenv("TOOLHOST_TURN_SEEDS")); err == nil {
		seeds = n
	} else if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { playTurn(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func playTurn(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	w := newWorld()
	spec := Spec{Headless: random.IntN(5) == 0, Budget: budget.TurnSpec{MaxCalls: 1 + random.IntN(40)}}
	if random.IntN(3) == 0 {
		spec.Budget.Deadline, spec.Budget.Reserve = time.Duration(1+random.IntN(60))*time.Second, time.Second
	}
	if random.IntN(3) == 0 {
		spec.Budget.ToolTime = time.Duration(1+random.IntN(30)) * time.Second
	}
	turn := w.begin(t, spec)
	var chaos sync.WaitGroup
	stop := make(chan struct{})
	chaosRandom := rand.New(rand.NewPCG(seed, 8))
	chaos.Go(func() { disturb(chaosRandom, turn, stop) })
	for batch := range 1 + random.IntN(3) {
		playBatch(t, random, turn, batch)
	}
	close(stop)
	chaos.Wait()
	turn.End()
	turn.End()
	if _, err := turn.Run(t.Context(), []Call{callOf("z", "work", 1)}); err == nil {
		t.Error("a batch ran after the end")
	}
	if len(w.Active()) != 0 {
		t.Error("the turn is still active")
	}
	checkEvents(t, w.journal.list())
	if w.fakes.crowded > 0 {
		t.Errorf("%d calls ran beside an exclusive one", w.fakes.crowded)
	}
}

func playBatch(t *testing.T, random *rand.Rand, turn *Turn, batch int) {
	names := []string{"work", "work", "work", "alone", "ask", "wipe", "banned", "nothing", StatusTool}
	var calls []Call
	for i := range random.IntN(8) {
		c := callOf(fmt.Sprintf("%d-%d", batch, i), names[random.IntN(len(names))], random.IntN(5000))
		switch random.IntN(10) {
		case 0:
			c.Problem = "odd"
		case 1, 2:
			c = asking(c.ID, "", func(a *fakeArgs) { a.Ms, a.Times, a.Say = random.IntN(5000), 1+random.IntN(3), c.ID })
		}
		calls = append(calls, c)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if random.IntN(6) == 0 {
		timer := time.AfterFunc(time.Duration(random.IntN(5000))*time.Millisecond, func() { cancel(ErrDisconnected) })
		defer timer.Stop()
	}
	defer cancel(nil)
	results, err := turn.Run(ctx, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range calls {
		if results[i] == nil || results[i].CallID != c.ID {
			t.Errorf("call %s has result %+v", c.ID, results[i])
		}
	}
}

// disturb aborts, answers and looks at random moments.
func disturb(random *rand.Rand, turn *Turn, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1+random.IntN(1500)) * time.Millisecond):
		}
		info, ok := turn.Info()
		switch n := random.IntN(20); {
		case n == 0:
			turn.Abort([]api.Reason{api.ReasonUser, api.ReasonError}[random.IntN(2)])
		case n < 4 && ok && len(info.CurrentTools) > 0:
			turn.AbortCall(info.CurrentTools[random.IntN(len(info.CurrentTools))].CallID)
		case n < 16 && ok && len(info.PendingInteractions) > 0:
			p := info.PendingInteractions[random.IntN(len(info.PendingInteractions))]
			_ = turn.Answer(p.ID, api.Answer{Approve: random.IntN(2) == 0, Always: random.IntN(4) == 0})
		}
	}
}

// checkEvents holds a turn's events against their grammar.
func checkEvents(t *testing.T, records []Record) {
	t.Helper()
	calls := map[string][]api.Event{}
	asked := map[string][]api.EventKind{}
	for i, r := range records {
		e := r.Event
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has seq %d", i+1, e.Seq)
		}
		if (e.Kind == api.EventTurnStart) != (i == 0) || (e.Kind == api.EventTurnEnd) != (i == len(records)-1) {
			t.Errorf("%s is event %d of %d", e.Kind, i+1, len(records))
		}
		if e.CallID != "" {
			calls[e.CallID] = append(calls[e.CallID], e)
		}
		if e.InteractionID != "" {
			kind := e.Kind
			if e.Pending != nil {
				kind += map[bool]api.EventKind{true: " true", false: " false"}[*e.Pending]
			}
			asked[e.InteractionID] = append(asked[e.InteractionID], kind)
		}
	}
	for id, list := range asked {
		checkInteraction(t, id, list)
	}
	for id, list := range calls {
		checkCall(t, id, list)
	}
}

// checkInteraction: one that was asked for is closed and, if somebody or the
// clock decided, audited once.
func checkInteraction(t *testing.T, id string, list []api.EventKind) {
	t.Helper()
	whole := []api.EventKind{api.AuditRequested, "interaction_pending true", api.EventInteractionRequest, api.EventInteractionResponse, "interaction_pending false"}
	if len(list) == 1 && list[0] == api.AuditRequested { // headless
		return
	}
	if len(list) < len(whole) || !slices.Equal(list[:len(whole)], whole) {
		t.Errorf("interaction %s: %q", id, list)
		return
	}
	if rest := list[len(whole):]; len(rest) > 1 || len(rest) == 1 && rest[0] != api.AuditAnswered && rest[0] != api.AuditTimedOut {
		t.Errorf("interaction %s: %q", id, list)
	}
}

func checkCall(t *testing.T, id string, list []api.Event) {
	t.Helper()
	var kinds []api.EventKind
	ends, started := 0, -1
	for i, e := range list {
		kinds = append(kinds, e.Kind)
		switch {
		case e.Kind == "tool_finished" || e.Kind == "tool_failed":
			ends++
		case e.Kind == "tool_started":
			started = i
		}
		if gate := e.Interaction == api.KindApproval || e.Interaction == api.KindConfirm; e.Interaction != "" && gate == (started >= 0) {
			t.Errorf("call %s: a %s %d events after its start", id, e.Interaction, i-started)
		}
	}
	last := kinds[len(kinds)-1]
	if kinds[0] != "tool_queued" || ends != 1 || last != "tool_finished" && last != "tool_failed" {
		t.Errorf("call %s: %q", id, kinds)
	}
}
