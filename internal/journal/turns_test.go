package journal_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

type instant struct{}

func (instant) Abort(api.Reason) {}

func (instant) Result() *api.Result {
	return supervisor.Verdict{Status: api.StatusOK}.Result()
}

func manager(j *journal.Journal) *turn.Manager {
	return turn.New(turn.Config{
		Start:   func(context.Context, supervisor.Request) turn.Running { return instant{} },
		Tool:    func(name string) (turn.Tool, bool) { return turn.Tool{Name: name}, true },
		Journal: journal.Turns{Journal: j},
	})
}

// What a turn has shown is what the journal gives back, byte for byte; what a
// dead owner left open is closed by the next one.
func TestTurnsAreKeptAndRecovered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open, err := manager(j).Begin(turn.Spec{ID: "open"})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := manager(j).Begin(turn.Spec{ID: "whole"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := whole.Run(t.Context(), []turn.Call{{ID: "a", Tool: "x"}}); err != nil {
		t.Fatal(err)
	}
	whole.End()
	next, stop := iter.Pull2(whole.Events(t.Context(), 0))
	defer stop()
	if err := j.Close(); err != nil { // as if it had died: one turn is open
		t.Fatal(err)
	}
	if j, err = journal.Open(dir, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := j.Recover(time.Now()); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	reader, err := journal.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	err = reader.Events("whole", 0, func(e journal.Event) bool {
		if r, err, ok := next(); !ok || err != nil || string(r.JSON) != string(e.JSON) {
			t.Errorf("kept %s, shown %s", e.JSON, r.JSON)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	turns, err := reader.Turns(api.Filter{TurnID: "open"})
	if err != nil || len(turns) != 1 || turns[0].Ended.IsZero() || turns[0].Reason != "error" {
		t.Errorf("%+v, %v", turns, err)
	}
	open.End()
}
