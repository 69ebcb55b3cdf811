package turn

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// recall reads what the recorder keeps.
func (m *recorder) recall(turnID, key string) (*api.Result, error) {
	for _, r := range m.list() {
		if r.Event.TurnID == turnID && r.Event.CallID == key && r.Result != nil {
			return r.Result, nil
		}
	}
	return nil, errors.New("it is not there")
}

// Results wait in memory for the last one of their batch as far as there is room; the others
// come from the record, if they are there.
func TestResultsWaitOnRecord(t *testing.T) {
	const size = 1000
	for name, test := range map[string]struct {
		room       int64
		recall     bool
		fail       error
		held, read int // while the last call runs
	}{
		"with room":            {1 << 20, true, nil, 3, 0},
		"without":              {1500, true, nil, 1, 3}, // the last one, too
		"without a record":     {1500, true, errFull, 3, 0},
		"that nobody can read": {1500, false, nil, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, read := newWorld(), 0
				w.room = test.room
				if test.recall {
					w.config.Recall = func(turnID, key string) (*api.Result, error) {
						read++
						return w.journal.recall(turnID, key)
					}
				}
				w.journal.fills(500*time.Microsecond, test.fail)
				turn := w.begin(t, Spec{})
				calls := []Call{speaks("a", 1, size), speaks("b", 2, size), speaks("c", 3, size), speaks("last", 1000, size)}
				time.AfterFunc(500*time.Millisecond, func() {
					if held := w.held.Load(); held != int64(test.held*size) {
						t.Errorf("%d bytes are held while the last call runs", held)
					}
				})
				results, err := turn.RunBatch(t.Context(), calls)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for r := range results.All() {
					if r.CallID != calls[n].ID || !r.OK() || len(r.Content[0].Text) != size || r.Unrecorded != (test.fail != nil) {
						t.Errorf("result %d: %+v", n, r)
					}
					n++
				}
				if n != len(calls) || read != test.read {
					t.Errorf("%d results, %d of them read", n, read)
				}
				results.Close()
				results.Close()
				if held := w.held.Load(); held != 0 {
					t.Errorf("%d bytes are still held", held)
				}
				turn.End()
			})
		})
	}
}

// speaks is a call whose result is a text of so many bytes.
func speaks(id string, ms, bytes int) Call {
	raw, _ := json.Marshal(fakeArgs{Ms: ms, Say: strings.Repeat(id[:1], bytes)})
	return Call{ID: id, Tool: "work", Arguments: raw}
}

// A result that cannot be read any more is one that says so.
func TestAResultThatCannotBeReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.room = 0
		w.config.Recall = func(string, string) (*api.Result, error) { return nil, errors.New("the disk is gone") }
		turn := w.begin(t, Spec{})
		results := run(t, turn, speaks("a", 1, 10))
		if r := results[0]; r.Status != api.StatusNoResult || r.CallID != "a" || r.TurnID != turn.ID() || !strings.Contains(r.Message, "the disk is gone") || r.Retry.SideEffects != "possible" {
			t.Errorf("%+v", r)
		}
		turn.End()
	})
}

// A turn of one batch goes on until nobody needs its record any more: what has ended may be
// removed.
func TestATurnWhoseResultsAreOnRecordGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.room, w.config.Recall = 15, w.journal.recall
		turn := w.begin(t, Spec{Single: true})
		results, err := turn.RunBatch(t.Context(), []Call{speaks("a", 1, 10), speaks("b", 2, 10), speaks("c", 3, 10)})
		if err != nil {
			t.Fatal(err)
		}
		if _, active := turn.Info(); !active || ends(w.journal) {
			t.Error("the turn has ended")
		}
		for r := range results.All() {
			if !r.OK() {
				t.Errorf("%+v", r)
			}
		}
		results.Close()
		if turn.End(); !ends(w.journal) {
			t.Error("its end is not on record")
		}
	})
}

func ends(m *recorder) bool {
	return slices.ContainsFunc(m.list(), func(r Record) bool { return r.Event.Kind == api.EventTurnEnd })
}
