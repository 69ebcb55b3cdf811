package fleet_test

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/supervisor"
)

// pair is this machine, and a worker in a process of its own that is reached over loopback.
type pair struct {
	b     *testing.B
	sides [2]side
}

// side is what was measured on one of them.
type side struct {
	name  string
	fleet *fleet.Fleet
	took  []time.Duration
	cpu   time.Duration
}

func newPair(b *testing.B) *pair {
	b.Helper()
	cpus.Spare() // as toolhost serve does, and the worker's process
	slots := supervisor.Admission{Running: 8}
	here, err := fleet.Open(b.Context(), fleet.Config{Supervisor: supervisor.Config{Admission: slots}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = here.Close() })
	w := newWorld(b, "w1")
	w.processOf(settings{Name: "w1", Slots: slots.Running})
	return &pair{b, [2]side{{name: "here", fleet: here}, {name: "worker", fleet: w.fleet}}}
}

// each measures something on both in turn, so that what else the machine does is in both.
func (p *pair) each(one func(*fleet.Fleet) time.Duration) {
	for p.b.Loop() {
		for i := range p.sides {
			s, before := &p.sides[i], used()
			s.took = append(s.took, one(s.fleet))
			s.cpu += used() - before
		}
	}
	var p50 [2]time.Duration
	for i, s := range p.sides {
		slices.Sort(s.took)
		p50[i] = s.took[len(s.took)/2]
		p.b.ReportMetric(float64(p50[i].Microseconds()), s.name+"-p50-µs")
		p.b.ReportMetric(float64(s.took[len(s.took)*99/100].Microseconds()), s.name+"-p99-µs")
		p.b.ReportMetric(float64(s.cpu.Microseconds())/float64(len(s.took)), s.name+"-cpu-µs")
	}
	p.b.ReportMetric(float64((p50[1] - p50[0]).Microseconds()), "over-p50-µs")
	p.b.ReportMetric(0, "ns/op") // of both, which says nothing
}

// used is what this process has had of CPUs.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOverLocal is the same call here and on a worker: a command, and one that a kept
// process answers, which costs little beside the way to it; both also as ones that may be
// made twice, so that the worker needs no further word.
func BenchmarkOverLocal(b *testing.B) {
	command := supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}}
	kept := supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Name: "count"}, Arguments: []byte(`{"text":""}`), Keep: &supervisor.Keep{MaxCalls: 1 << 30}}
	for _, of := range []struct {
		name    string
		request supervisor.Request
	}{{"command", command}, {"kept", kept}} {
		for _, harmless := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/idempotent=%v", of.name, harmless), func(b *testing.B) {
				p, r := newPair(b), of.request
				r.Tool.Idempotent = harmless
				if r.Command == nil {
					e, err := p.sides[0].fleet.Host().Explain(b.Context(), r)
					if err != nil {
						b.Fatal(err)
					}
					r.SHA256 = e.SHA256
				}
				p.each(func(f *fleet.Fleet) time.Duration {
					began := time.Now()
					c := f.Start(b.Context(), r)
					got := c.Result()
					took := time.Since(began)
					if !got.OK() {
						b.Fatal(got.Message)
					}
					<-c.Gone() // or what ends here would delay the next one, at the worker
					return took
				})
			})
		}
	}
}

// termVariable has the test binary be a tool that says when it gets SIGTERM.
const termVariable = "TOOLHOST_TEST_TERM"

func sayWhenTold() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	fmt.Println("up")
	<-told
	fmt.Println(time.Now().UnixNano())
	os.Exit(0)
}

// BenchmarkAbort is from an abort to the tool's SIGTERM; streams are calls at the worker that
// write as fast as they can, into events.
func BenchmarkAbort(b *testing.B) {
	for _, streams := range []int{0, 4} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			p := newPair(b)
			for range streams {
				c := p.sides[1].fleet.Start(b.Context(), supervisor.Request{
					Command: &supervisor.Command{Argv: []string{"yes"}}, Events: drained(b), EventOutputBytes: 1 << 50,
				})
				b.Cleanup(func() { c.Abort(api.ReasonUser); c.Abort(api.ReasonUser); c.Result() })
			}
			p.each(func(f *fleet.Fleet) time.Duration { return abortOf(b, f) })
		})
	}
}

func abortOf(b *testing.B, f *fleet.Fleet) time.Duration {
	events := make(chan api.Event, 100)
	c := f.Start(b.Context(), supervisor.Request{Command: &supervisor.Command{Argv: []string{os.Args[0]}}, Env: []string{termVariable + "=1"}, Events: events})
	for up := false; !up; {
		select {
		case e := <-events:
			up = e.Kind == api.EventOutput
		case <-c.Done():
			b.Fatal(c.Result().Message)
		}
	}
	began := time.Now()
	c.Abort(api.ReasonUser)
	out := strings.Fields(c.Result().Output.Stdout.Head)
	if len(out) != 2 {
		b.Fatalf("%q: %s", out, c.Result().Message)
	}
	at, err := strconv.ParseInt(out[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, at).Sub(began)
}

// drained is read until the benchmark ends.
func drained(b *testing.B) chan<- api.Event {
	events := make(chan api.Event, 100)
	go func() {
		for {
			select {
			case <-events:
			case <-b.Context().Done():
				return
			}
		}
	}()
	return events
}

// resultBytes is how much a call of BenchmarkLargeResult says, all of which is in its result.
const resultBytes = 100 << 20

// BenchmarkLargeResult is a call whose result is large: it comes whole, in as many windows
// of credit as it takes. over-MB/s is what the way to a worker and back adds.
func BenchmarkLargeResult(b *testing.B) {
	p := newPair(b)
	r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", resultBytes)}}}
	r.Limits.OutputBytes, r.Limits.MemoryBytes = resultBytes, 512<<20
	r.EventOutputBytes = -1
	p.each(func(f *fleet.Fleet) time.Duration {
		began := time.Now()
		if got := f.Call(b.Context(), r); !got.OK() || len(got.Output.Stdout.Head) != resultBytes {
			b.Fatalf("%d bytes: %s", len(got.Output.Stdout.Head), got.Message)
		}
		return time.Since(began)
	})
	slices.Sort(p.sides[0].took)
	slices.Sort(p.sides[1].took)
	for _, s := range p.sides {
		b.ReportMetric(resultBytes/1e6/s.took[len(s.took)/2].Seconds(), s.name+"-MB/s")
	}
	over := p.sides[1].took[len(p.sides[1].took)/2] - p.sides[0].took[len(p.sides[0].took)/2]
	b.ReportMetric(resultBytes/1e6/max(over, time.Microsecond).Seconds(), "over-MB/s")
}
