package bench

import (
	"context"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// BenchmarkPrestartedCall: the whole call, default sandbox and limits, of a process
// that was started before it, against one that starts its own. Its phases are those
// of a call's marks.
func BenchmarkPrestartedCall(b *testing.B) {
	host := newHost(b)
	fresh := supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments}
	ahead := fresh
	ahead.Prestart = 2
	host.Prestart([]supervisor.Request{ahead})
	phases := map[string][]time.Duration{}
	note := func(m api.Marks) {
		for name, d := range map[string]time.Duration{
			"take-µs": m.Ready.Sub(m.Admitted), "work-µs": m.Stop.Sub(m.Ready), "empty-µs": m.Empty.Sub(m.Kill), "done-µs": m.Done.Sub(m.Empty),
		} {
			phases[name] = append(phases[name], d)
		}
	}
	awaitParked := func() {
		settle(host)
		for host.Prestarted().Processes < 2 {
			time.Sleep(time.Millisecond)
		}
	}
	awaitParked()
	n, ratio := contest(b, func(b *testing.B) {
		r := host.Call(context.Background(), ahead)
		if !r.OK() || r.Instance != api.InstancePrestarted {
			b.Fatalf("%s %s", r.Instance, r.Message)
		}
		note(r.Marks)
	}, func(b *testing.B) {
		if r := host.Call(context.Background(), fresh); !r.OK() || r.Instance != api.InstanceFresh {
			b.Fatalf("%s %s", r.Instance, r.Message)
		}
	}, awaitParked)
	for name, list := range phases {
		b.ReportMetric(micros(median(list)), name)
	}
	if parked := host.Prestarted(); parked.Processes > 0 {
		b.ReportMetric(float64(parked.MemoryBytes)/float64(parked.Processes)/(1<<20), "MiB-each")
	}
	atMost(b, n, "ratio", ratio, prestartedRatio)
}
