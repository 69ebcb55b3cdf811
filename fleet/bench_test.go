package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/supervisor"
)

// BenchmarkEmptyCall is the same command here and on a worker over loopback.
func BenchmarkEmptyCall(b *testing.B) {
	here, err := fleet.Open(b.Context(), fleet.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = here.Close() })
	w := newWorld(b, "w1")
	w.work("w1", nil)
	for _, c := range []struct {
		name  string
		fleet *fleet.Fleet
	}{{"here", here}, {"worker", w.fleet}} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}}
				if got := c.fleet.Call(b.Context(), r); !got.OK() {
					b.Fatal(got.Message)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
