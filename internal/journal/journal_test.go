package journal

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func TestReplayIsIdentical(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	var want []Event
	for seq := range int64(1000) {
		want = append(want, event("t1", seq+1, "tool_output"))
	}
	large := event("t1", 1001, "tool_output")
	large.JSON = slices.Repeat([]byte{0xff}, MaxEventBytes)
	want = append(want, large)
	for chunk := range slices.Chunk(want, 7) {
		mustAppend(t, j, chunk...)
	}
	r := mustRead(t, dir)
	expectSame(t, collect(t, r, "t1", 0), want)
	expectSame(t, collect(t, r, "t1", 990), want[990:])
	mustClose(t, j)
	expectSame(t, collect(t, r, "t1", 0), want)
	expectSame(t, collect(t, mustRead(t, dir), "t1", 0), want)
}

func TestEventsStopsEarly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustAppend(t, mustOpen(t, dir, Options{}), wholeTurn("t1", "shell", "ok")...)
	n := 0
	if err := mustRead(t, dir).Events("t1", 0, func(Event) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("%d events, error %v", n, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, wholeTurn("done", "shell", "ok")...)
	mustAppend(t, j, event("t", 1, "turn_start"), callEvent("t", 2, api.EventQueued, "c", "x"), ending("t", 3, "c", "x", "ok"))
	long := strings.Repeat("x", MaxIDBytes+1)
	noOutcome := callEvent("t", 4, api.EventFailed, "c", "x")
	largeResult := ending("t", 4, "c", "x", "ok")
	largeResult.Outcome.Result = make([]byte, MaxResultBytes+1)
	largeJSON := event("t", 4, "x")
	largeJSON.JSON = make([]byte, MaxEventBytes+1)
	for _, c := range []struct {
		name   string
		events []Event
		target error
		words  string
	}{
		{"gap", []Event{event("t", 5, "x")}, nil, "bug: event 5"},
		{"gap in a batch", []Event{event("t", 4, "x"), event("t", 6, "x")}, nil, "where 5 must come"},
		{"duplicate", []Event{event("t", 3, "x")}, nil, "bug: event 3"},
		{"not from 1", []Event{event("new", 2, "x")}, nil, "where 1 must come"},
		{"after the end", []Event{event("done", 6, "x")}, nil, "has ended"},
		{"after the end in a batch", []Event{event("t", 4, api.EventTurnEnd), event("t", 5, "x")}, nil, "has ended"},
		{"begun twice", []Event{event("t", 1, "turn_start")}, ErrTurnTaken, `"t"`},
		{"begun with the name of one that has ended", []Event{event("new", 1, "turn_start"), event("done", 1, "turn_start")}, ErrTurnTaken, `"done"`},
		{"queued twice", []Event{callEvent("t", 4, api.EventQueued, "c", "x")}, nil, "second time"},
		{"ended twice", []Event{ending("t", 4, "c", "x", "ok")}, nil, "is over"},
		{"never queued", []Event{ending("t", 4, "d", "x", "ok")}, nil, "was not queued"},
		{"no outcome", []Event{noOutcome}, nil, "needs an outcome"},
		{"no call", []Event{event("t", 4, api.EventQueued)}, nil, "needs a call's id"},
		{"no turn", []Event{event("", 4, "x")}, nil, "needs a turn's id"},
		{"long turn", []Event{event(long, 1, "x")}, ErrTooLarge, "201 bytes"},
		{"long call", []Event{callEvent("t", 4, "x", long, "x")}, ErrTooLarge, "201 bytes"},
		{"long tool", []Event{callEvent("t", 4, "x", "c", long)}, ErrTooLarge, "201 bytes"},
		{"large JSON", []Event{largeJSON}, ErrTooLarge, "over 1048576"},
		{"large result", []Event{largeResult}, ErrTooLarge, "result"},
		{"many", make([]Event, MaxEvents+1), ErrTooLarge, "at once"},
	} {
		t.Run(c.name, func(t *testing.T) { expectError(t, j.Append(c.events...), c.target, c.words) })
	}
	mustAppend(t, j)
	mustAppend(t, j, event("t", 4, api.EventTurnEnd))
	if got := collect(t, mustRead(t, dir), "t", 0); len(got) != 4 {
		t.Errorf("%d events are left of 4 that were right", len(got))
	}
}

func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	const turns, events = 16, 200
	var wg sync.WaitGroup
	for n := range turns {
		turn := fmt.Sprint("t", n)
		wg.Go(func() {
			for seq := range int64(events) {
				if err := j.Append(event(turn, seq+1, "tool_output")); err != nil {
					t.Error(err)
				}
				// One bad request must fail nobody else's.
				if j.Append(event(turn, seq+1, "tool_output")) == nil {
					t.Error("a duplicate was appended")
				}
			}
		})
	}
	r := mustRead(t, dir)
	wg.Go(func() {
		for range 50 {
			if _, err := r.Turns(api.Filter{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	for n := range turns {
		if got := collect(t, r, fmt.Sprint("t", n), 0); len(got) != events {
			t.Errorf("turn %d has %d events, want %d", n, len(got), events)
		}
	}
}

func TestAppendAfterClose(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{})
	mustClose(t, j)
	mustClose(t, j)
	expectError(t, j.Append(event("t", 1, "x")), ErrClosed)
	_, err := j.Prune(t.Context())
	expectError(t, err, ErrClosed)
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	if left := j.Unfinished(); len(left) != 0 {
		t.Errorf("a new journal has unfinished turns: %v", left)
	}
	mustAppend(t, j, wholeTurn("done", "shell", "ok")...)
	mustAppend(t, j, event("open", 1, "turn_start"), callEvent("open", 2, api.EventQueued, "a", "x"),
		callEvent("open", 3, api.EventQueued, "b", "y"), ending("open", 4, "a", "x", "ok"))
	mustClose(t, j)

	j = mustOpen(t, dir, Options{})
	left := j.Unfinished()
	if len(left) != 1 || left[0].TurnID != "open" || left[0].NextSeq != 5 || left[0].Aborted ||
		!left[0].Started.Equal(start.Add(time.Second)) || !slices.Equal(left[0].OpenCalls, []OpenCall{{"b", "y"}}) {
		t.Fatalf("unfinished: %+v", left)
	}
	if report := j.Report(); report.Unclean || report.Checked || report.MovedAside != "" {
		t.Errorf("after a clean end the report is %+v", report)
	}
	abort := event("open", 6, api.EventTurnAbort)
	abort.Outcome = &Outcome{Reason: "error"}
	mustAppend(t, j, ending("open", 5, "b", "y", "no_result"), abort, event("open", 7, api.EventTurnEnd))
	mustClose(t, j)
	if left := mustOpen(t, dir, Options{}).Unfinished(); len(left) != 0 {
		t.Errorf("still unfinished: %+v", left)
	}
	turns, err := mustRead(t, dir).Turns(api.Filter{TurnID: "open"})
	if err != nil || len(turns) != 1 || turns[0].State != api.TurnAborted || turns[0].Reason != "error" {
		t.Errorf("turns %+v, error %v", turns, err)
	}
}

// Small requests go first, but the oldest large one lets them pass only once.
func TestSmallRequestsPassLargeOnes(t *testing.T) {
	t.Parallel()
	of := func(events int) *request { return &request{events: make([]Event, events)} }
	small, bulky := of(1), of(1)
	bulky.bytes = maxSmallBytes + 1
	j := &Journal{waiting: []*request{of(64), small, bulky, small}}
	for _, want := range []string{"[1 1] true", "[64 1 1] false", "[] false"} {
		group, more := j.collect()
		var sizes []int
		for _, r := range group {
			sizes = append(sizes, len(r.events))
		}
		if got := fmt.Sprint(sizes, more); got != want {
			t.Errorf("taken %s, want %s", got, want)
		}
		if len(j.waiting) > 0 {
			j.waiting = append(j.waiting, small)
		}
	}
	for range 2 * maxGroup {
		j.waiting = append(j.waiting, small)
	}
	if group, more := j.collect(); len(group) != maxGroup || !more {
		t.Errorf("%d small ones at once, more %v", len(group), more)
	}
}
