package journal

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// BenchmarkAppend appends events of 300 bytes, one a commit.
func BenchmarkAppend(b *testing.B) {
	benchmarkAppend(b, mustOpen(b, b.TempDir(), Options{}))
}

// BenchmarkAppendWhilePruning appends the same while 200 MB of old turns are pruned.
func BenchmarkAppendWhilePruning(b *testing.B) {
	dir := b.TempDir()
	j := mustOpen(b, dir, Options{Retention: Retention{MaxBytes: -1}})
	for n := range 200 {
		appendBulk(b, j, fmt.Sprint("t", n), 50)
	}
	mustClose(b, j)
	benchmarkAppend(b, mustOpen(b, dir, Options{Retention: Retention{MaxBytes: 1 << 20}}))
}

func benchmarkAppend(b *testing.B, j *Journal) {
	e := event("t", 1, "tool_output")
	e.CallID, e.Tool, e.JSON = "call-1", "shell", make([]byte, 300)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		mustAppend(b, j, e)
		took = append(took, time.Since(began))
		e.Seq++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1000, "max-µs")
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100].Nanoseconds())/1000, fmt.Sprintf("p%d-µs", p))
	}
}

// BenchmarkAppendParallel shares commits among 16 turns.
func BenchmarkAppendParallel(b *testing.B) {
	j := mustOpen(b, b.TempDir(), Options{})
	var turns atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		e := event(fmt.Sprint("t", turns.Add(1)), 1, "tool_output")
		e.JSON = make([]byte, 300)
		for pb.Next() {
			mustAppend(b, j, e)
			e.Seq++
		}
	})
}

// BenchmarkReplay reads events of 300 bytes.
func BenchmarkReplay(b *testing.B) {
	dir := b.TempDir()
	j := mustOpen(b, dir, Options{})
	var batch []Event
	for seq := range int64(1000) {
		e := event("t", seq+1, "tool_output")
		e.JSON = make([]byte, 300)
		batch = append(batch, e)
	}
	mustAppend(b, j, batch...)
	r := mustRead(b, dir)
	for b.Loop() {
		collect(b, r, "t", 0)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/event")
}

// BenchmarkCheck is what Open does after an unclean end.
func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	j := mustOpen(b, dir, Options{})
	e := event("t", 1, "tool_output")
	e.JSON = make([]byte, 300)
	for range 200 {
		var batch []Event
		for range 1000 {
			batch = append(batch, e)
			e.Seq++
		}
		mustAppend(b, j, batch...)
	}
	size, _, err := j.writer.size()
	if err != nil {
		b.Fatal(err)
	}
	r := mustRead(b, dir)
	b.SetBytes(size)
	for b.Loop() {
		if err := quickCheck(b.Context(), r.db); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSingleCall appends turns of one call, one a commit.
func BenchmarkSingleCall(b *testing.B) {
	j := mustOpen(b, b.TempDir(), Options{})
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		turn := singleCall(fmt.Sprintf("%026d", n*7919%1_000_003))
		began := time.Now()
		mustAppend(b, j, turn...)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
}

// singleCall is a turn of one call with a result of 2 KB.
func singleCall(turn string) []Event {
	end := ending(turn, 4, "c", "shell", "ok")
	end.Outcome.Result = []byte(`"` + strings.Repeat("r", 2000) + `"`)
	return []Event{
		event(turn, 1, api.EventTurnStart), callEvent(turn, 2, api.EventQueued, "c", "shell"),
		callEvent(turn, 3, api.EventStarted, "c", "shell"), end, event(turn, 5, api.EventTurnEnd),
	}
}
