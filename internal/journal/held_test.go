package journal

import (
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// ofOwner is a turn that begins for an owner.
func ofOwner(owner string, events []Event) []Event {
	events[0].Owner = owner
	return events
}

func bulk(turn string, kib int) []Event {
	events := wholeTurn(turn, "shell", "ok")
	events[len(events)-2].Outcome.Result = fmt.Appendf(nil, "%q", make([]byte, kib<<8)) // four bytes each
	return events
}

func turnsOf(t *testing.T, r *Reader) (ids []string) {
	t.Helper()
	list, err := r.Turns(api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		ids = append(ids, one.TurnID)
	}
	return ids
}

// What one owner has over its bound is taken from its own turns, the oldest first, and
// from nobody else's; its newest stays, however large.
func TestAnOwnersTurnsMakeRoomForEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := Options{OwnerBytes: func(owner string) int64 { return map[string]int64{"greedy": 300 << 10}[owner] }}
	j := mustOpen(t, dir, options)
	r := mustRead(t, dir)
	mustAppend(t, j, ofOwner("quiet", bulk("q1", 500))...)
	for n := range 5 {
		mustAppend(t, j, ofOwner("greedy", bulk(fmt.Sprint("g", n), 100))...)
	}
	mustAppend(t, j, ofOwner("quiet", bulk("q2", 500))...)
	if _, err := j.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids := fmt.Sprint(turnsOf(t, r)); ids != "[q2 g4 g3 q1]" && ids != "[q1 g3 g4 q2]" {
		t.Errorf("left are %s", ids)
	}
	mustAppend(t, j, ofOwner("greedy", bulk("huge", 900))...)
	if _, err := j.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids := fmt.Sprint(turnsOf(t, r)); ids != "[huge q2 q1]" && ids != "[q1 q2 huge]" {
		t.Errorf("left are %s", ids)
	}
	mustClose(t, j)

	j = mustOpen(t, dir, options) // it knows what there is
	mustAppend(t, j, ofOwner("greedy", wholeTurn("next", "shell", "ok"))...)
	eventually(t, "the huge one to be pruned", func() bool { return len(turnsOf(t, r)) == 3 })
	if held := j.Held("greedy", 0); held != 0 {
		t.Errorf("%d bytes are held by no active turn", held)
	}
}

// What an active turn holds is known, also where an Append has failed in between.
func TestHeldByActiveTurns(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{})
	whole := ofOwner("agent", bulk("t", 100))
	mustAppend(t, j, whole[:len(whole)-1]...)
	held := j.Held("agent", 0)
	if held < 100<<10 || held > 110<<10 {
		t.Errorf("%d bytes are held", held)
	}
	if err := j.Append(event("t", 99, "tool_progress")); err == nil {
		t.Error("a gap")
	}
	mustAppend(t, j, whole[len(whole)-1])
	if held := j.Held("agent", 0); held != 0 {
		t.Errorf("%d bytes are held at the end", held)
	}
	if other := j.Held("nobody", 0); other != 0 {
		t.Errorf("%d bytes are nobody's", other)
	}
}
