package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func TestReaderNeedsAJournal(t *testing.T) {
	t.Parallel()
	_, err := OpenReader(filepath.Join(t.TempDir(), "none"))
	expectError(t, err, fs.ErrNotExist, "cannot read the journal in")
	_, err = OpenReader(t.TempDir())
	expectError(t, err, fs.ErrNotExist)
	_, err = OpenReader("")
	expectError(t, err, nil)
}

// listed is a journal of three turns, one with two calls.
func listed(t *testing.T) (*Journal, *Reader) {
	t.Helper()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	shift := func(events []Event, hours int) []Event {
		for i := range events {
			events[i].Time = events[i].Time.Add(time.Duration(hours) * time.Hour)
		}
		return events
	}
	mustAppend(t, j, wholeTurn("t0", "shell", "ok")...)
	mustAppend(t, j, shift(wholeTurn("t1", "search", "timeout"), 1)...)
	second := callEvent("t2", 3, api.EventQueued, "c2", "search")
	mustAppend(t, j, shift([]Event{event("t2", 1, "turn_start"), callEvent("t2", 2, api.EventQueued, "c1", "shell"), second}, 2)...)
	mustAppend(t, j, shift([]Event{ending("t2", 4, "c1", "shell", "timeout")}, 2)...)
	return j, mustRead(t, dir)
}

func TestLists(t *testing.T) {
	t.Parallel()
	_, r := listed(t)
	for _, c := range []struct {
		name         string
		filter       api.Filter
		turns, calls []string
	}{
		{"all", api.Filter{}, []string{"t2", "t1", "t0"}, []string{"t2/c2", "t2/c1", "t1/c1", "t0/c1"}},
		{"limit", api.Filter{Limit: 2}, []string{"t2", "t1"}, []string{"t2/c2", "t2/c1"}},
		{"turn", api.Filter{TurnID: "t1"}, []string{"t1"}, []string{"t1/c1"}},
		{"tool", api.Filter{Tool: "search"}, []string{"t2", "t1"}, []string{"t2/c2", "t1/c1"}},
		{"status", api.Filter{Status: "timeout"}, []string{"t2", "t1"}, []string{"t2/c1", "t1/c1"}},
		{"open", api.Filter{Status: "open"}, []string{"t2"}, []string{"t2/c2"}},
		{"both", api.Filter{Status: "timeout", Tool: "search"}, []string{"t1"}, []string{"t1/c1"}},
		{"since", api.Filter{Since: start.Add(time.Hour)}, []string{"t2", "t1"}, []string{"t2/c2", "t2/c1", "t1/c1"}},
		{"until", api.Filter{Until: start.Add(time.Hour)}, []string{"t0"}, []string{"t0/c1"}},
		{"none", api.Filter{Tool: "none"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			turns, err := r.Turns(c.filter)
			var names []string
			for _, turn := range turns {
				names = append(names, turn.TurnID)
			}
			if err != nil || !slices.Equal(names, c.turns) {
				t.Errorf("turns %v, want %v, error %v", names, c.turns, err)
			}
			calls, err := r.Calls(c.filter)
			names = nil
			for _, call := range calls {
				names = append(names, call.TurnID+"/"+call.CallID)
			}
			if err != nil || !slices.Equal(names, c.calls) {
				t.Errorf("calls %v, want %v, error %v", names, c.calls, err)
			}
		})
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	_, r := listed(t)
	turns, err := r.Turns(api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	open, ended := turns[0], turns[1]
	if open.State != api.TurnOpen || !open.Ended.IsZero() || open.Events != 4 || open.Calls != 2 ||
		!maps.Equal(open.Outcomes, map[string]int{"timeout": 1, "open": 1}) {
		t.Errorf("open turn: %+v", open)
	}
	if ended.State != api.TurnEnded || !ended.Ended.Equal(start.Add(time.Hour+5*time.Second)) || ended.Events != 5 {
		t.Errorf("ended turn: %+v", ended)
	}
	calls, err := r.Calls(api.Filter{TurnID: "t0"})
	want := api.CallSummary{
		TurnID: "t0", CallID: "c1", Tool: "shell", Status: "ok", Queued: start.Add(2 * time.Second),
		Started: start.Add(3 * time.Second), Ended: start.Add(4 * time.Second), ElapsedMs: 1500, HasResult: true,
	}
	if err != nil || len(calls) != 1 || calls[0] != want {
		t.Errorf("calls %+v, want %+v, error %v", calls, want, err)
	}
	result, err := r.Result("t0", "c1")
	if err != nil || string(result) != `{"call": "c1"}` {
		t.Errorf("result %s, error %v", result, err)
	}
	_, err = r.Result("t2", "c2")
	expectError(t, err, ErrNotFound)
	expectError(t, r.Events("none", 0, func(Event) bool { return true }), ErrNotFound)
}

func TestFollowTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	want := wholeTurn("t", "shell", "ok")
	mustAppend(t, j, want[:2]...)
	r := mustRead(t, dir)
	var got []Event
	err := r.Follow(t.Context(), FollowOptions{TurnID: "t"}, func(e Event) bool {
		got = append(got, e)
		if e.Seq >= 2 && e.Seq < 5 { // one at a time, while it is followed
			mustAppend(t, j, event(fmt.Sprint("other", e.Seq), 1, "turn_start"))
			mustAppend(t, j, want[e.Seq])
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	expectSame(t, got, want)
}

func TestFollowAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, wholeTurn("old", "shell", "ok")...)
	r := mustRead(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	news, followed := make(chan Event, 100), make(chan error, 1)
	go func() {
		followed <- r.Follow(ctx, FollowOptions{}, func(e Event) bool { news <- e; return true })
	}()
	for at := range int64(5) {
		if e := <-news; e.Pos != at+1 || e.Seq != at+1 {
			t.Errorf("event %d is %+v", at+1, e)
		}
	}
	mustClose(t, j)
	j = mustOpen(t, dir, Options{})
	mustAppend(t, j, event("new", 1, "turn_start"))
	if e := <-news; e.TurnID != "new" || e.Pos != 6 {
		t.Errorf("after a change of owner: %+v", e)
	}
	cancel(enough)
	if err := <-followed; !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	f := follower{reader: r}
	if err := f.start(t.Context(), true); err != nil || f.after != 6 {
		t.Errorf("the end is at %d, error %v", f.after, err)
	}
}

func TestFollowNoticesReplacement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, event("t", 1, "turn_start"))
	r := mustRead(t, dir)
	mustClose(t, j)
	followed := make(chan error, 1)
	go func() {
		followed <- r.Follow(t.Context(), FollowOptions{}, func(Event) bool { return true })
	}()
	if _, err := moveAside(dir, ".aside"); err != nil {
		t.Fatal(err)
	}
	expectError(t, <-followed, ErrReplaced)
}
