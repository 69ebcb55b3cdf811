package turn

import (
	"testing"
	"testing/synctest"
)

func TestRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		same := func(i int) Call {
			raw := []string{`{"ms":1,"say":"x"}`, `{ "say": "x", "ms": 1 }`}[i%2]
			return Call{ID: string(rune('a' + i)), Tool: "work", Arguments: []byte(raw)}
		}
		for i := range 6 {
			r := run(t, turn, same(i))[0]
			noted := len(r.Warnings) > 0
			if noted != (i == 2 || i == 3) || (r.Reason == "repeat") != (i >= 4) {
				t.Errorf("call %d: %s/%s, warnings %q", i+1, r.Status, r.Reason, r.Warnings)
			}
		}
		poll := callOf("poll", "poll", 1)
		for i := range 7 {
			poll.ID = "poll" + string(rune('a'+i))
			if r := run(t, turn, poll)[0]; !r.OK() || len(r.Warnings) > 0 {
				t.Errorf("a repeatable tool's call %d: %s/%s, warnings %q", i+1, r.Status, r.Reason, r.Warnings)
			}
		}
		// What the host has seen in other turns counts, too.
		again := callOf("other", "work", 7)
		again.Before = 4
		want(t, run(t, turn, again), "denied/repeat")
	})
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 20: "20th", 21: "21st", 112: "112th", 123: "123rd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
