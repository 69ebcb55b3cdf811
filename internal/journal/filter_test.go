package journal

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// manyTurns makes a journal with so many turns of one call each, a minute apart. Of
// the oldest hundred, some are another owner's, of another tool, or failed; one in
// fifty failed at all.
func manyTurns(b testing.TB, n int) (*Reader, time.Time) {
	b.Helper()
	dir := b.TempDir()
	mustClose(b, mustOpen(b, dir, Options{}))
	db, err := sql.Open("sqlite", dsn(dir, ""))
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now().Add(-time.Duration(n) * time.Minute)
	ids := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", n)
	const at = "?1 + i * 60000000000"
	for _, script := range []string{
		"INSERT INTO turns (turn_id, started, ended, owner) " + ids + "SELECT printf('%x-%d', i * 2654435761 % 4294967296, i), " + at + ", " + at + " + 2000, CASE WHEN i % 5 = 1 AND i < 100 THEN 'rare' ELSE 'common' END FROM n",
		"INSERT INTO calls (turn, call_id, tool, status, queued, started, ended) " + ids + "SELECT i, 'call', CASE WHEN i % 5 = 2 AND i < 100 THEN 'rare' ELSE 'common' END, " +
			"CASE WHEN i % 5 = 3 AND i < 100 THEN 'crashed' WHEN i % 50 = 0 THEN 'timeout' ELSE 'ok' END, " + at + ", " + at + " + 1, " + at + " + 1000 FROM n",
		"INSERT INTO events (pos, turn, seq, time, kind, call_id, tool, json) " + ids + ", s(k) AS (VALUES (1), (2), (3), (4), (5)) SELECT i * 5 + k, i, k, " + at + ", 'turn_start', '', '', zeroblob(300) FROM n, s",
	} {
		if _, err := db.ExecContext(context.Background(), script, began.UnixNano()); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return r, began
}

type filtered struct {
	name string
	api.Filter
	want int // how many it selects of a list of 100
}

// filters are of a journal of n turns that began then.
func filters(n int, began time.Time) []filtered {
	at := func(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }
	return []filtered{
		{"all", api.Filter{}, 100},
		{"tool/none", api.Filter{Tool: "nosuch"}, 0},
		{"tool/rare", api.Filter{Tool: "rare"}, 20},
		{"tool/common", api.Filter{Tool: "common"}, 100},
		{"status/none", api.Filter{Status: "oom"}, 0},
		{"status/rare", api.Filter{Status: "crashed"}, 20},
		{"status/some", api.Filter{Status: "timeout"}, 100},
		{"status/open", api.Filter{Status: "open"}, 0},
		{"status/ok", api.Filter{Status: "ok"}, 100},
		{"tool,status", api.Filter{Tool: "common", Status: "crashed"}, 20},
		{"owner/none", api.Filter{Owner: "nobody"}, 0},
		{"owner/rare", api.Filter{Owner: "rare"}, 20},
		{"owner/common", api.Filter{Owner: "common"}, 100},
		{"owner,tool", api.Filter{Owner: "rare", Tool: "common"}, 20},
		{"until/old", api.Filter{Until: at(51)}, 50},
		{"since/new", api.Filter{Since: at(n - 50)}, 51},
		{"since,until", api.Filter{Since: at(500), Until: at(550)}, 50},
		{"owner,until", api.Filter{Owner: "rare", Until: at(60)}, 12},
		{"tool,until", api.Filter{Tool: "common", Until: at(11)}, 8},
	}
}

// timesOf are the times of what a filter selects, of calls and of turns.
func timesOf(r *Reader, f api.Filter) map[string]func() ([]time.Time, error) {
	return map[string]func() ([]time.Time, error){
		"calls": func() (at []time.Time, err error) {
			calls, err := r.Calls(f)
			for _, c := range calls {
				at = append(at, c.Queued)
			}
			return at, err
		},
		"turns": func() (at []time.Time, err error) {
			turns, err := r.Turns(f)
			for _, t := range turns {
				at = append(at, t.Started)
			}
			return at, err
		},
	}
}

// Whatever way it is looked for, a filter selects the same, the newest first.
func TestFiltersOfManyTurns(t *testing.T) {
	const turns = 2*few + 1000
	r, began := manyTurns(t, turns)
	for _, f := range filters(turns, began) {
		for kind, list := range timesOf(r, f.Filter) {
			at, err := list()
			if err != nil || len(at) != f.want || !slices.IsSortedFunc(at, func(a, b time.Time) int { return b.Compare(a) }) {
				t.Errorf("%s %s: %d listed, want %d, the newest first: %v", kind, f.name, len(at), f.want, err)
			}
		}
	}
}

// BenchmarkFilters lists the calls and turns that a filter selects out of 100,000 turns.
func BenchmarkFilters(b *testing.B) {
	const turns = 100_000
	r, began := manyTurns(b, turns)
	for _, f := range filters(turns, began) {
		for kind, list := range timesOf(r, f.Filter) {
			b.Run(kind+"/"+f.name, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					at, err := list()
					took = append(took, time.Since(began))
					if len(at) != f.want || err != nil {
						b.Fatalf("%d listed, want %d: %v", len(at), f.want, err)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
