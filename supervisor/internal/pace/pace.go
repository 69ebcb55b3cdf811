// Package pace bounds the CPU time that the output of calls takes of a host.
package pace

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Output is taken as fast as it comes while few calls run. Where more than
// manyPerCPU for each CPU do, each has an equal share of outputShare of the CPUs
// for what it sends, behind a first paceBurst: the host's other work must go on,
// and a tool that sends without end waits for its reader, as at any full pipe.
const (
	manyPerCPU  = 1
	outputShare = 0.25
	paceBurst   = 10 * time.Millisecond
	// wakeCost is what one piece of output costs beside its handling: two threads
	// are woken for it, and preempt others.
	wakeCost = 50 * time.Microsecond
	// minNap is the least worth waking up from; meanwhile pieces gather that are
	// taken in one go. maxNap bounds how late the end of a call can be noticed.
	minNap, maxNap = 5 * time.Millisecond, 20 * time.Millisecond
)

// CPUs are those that this process may use, as the Go runtime has found them: a
// program may set GOMAXPROCS to more later.
var CPUs = runtime.GOMAXPROCS(0)

// Busy says whether as many threads run, or wait for a CPU, as there are CPUs.
func Busy() bool {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	var load [3]float64
	var runnable, all int
	if _, err := fmt.Sscanf(string(raw), "%g %g %g %d/%d", &load[0], &load[1], &load[2], &runnable, &all); err != nil {
		return false
	}
	return runnable-1 >= CPUs // this one is among them
}

// Pace slows one reader of a call's output down to its share. One goroutine uses
// it.
type Pace struct {
	// Load is that of the gate for calls.
	Load func() (running, waiting int)
	debt time.Duration // CPU time used beyond the share
	at   time.Time     // when debt was true
}

// Spent counts what a piece of output took, and waits where that is too much. What
// is late, as in a call that ends, does not wait.
func (p *Pace) Spent(took time.Duration, late bool) {
	if nap := p.owe(time.Now(), took+wakeCost); nap > 0 && !late {
		time.Sleep(nap)
	}
}

// owe is how long to wait now.
func (p *Pace) owe(now time.Time, took time.Duration) (nap time.Duration) {
	calls, _ := p.Load()
	if calls <= manyPerCPU*CPUs {
		p.debt, p.at = 0, now
		return 0
	}
	share := outputShare * float64(CPUs) / float64(calls)
	p.debt = max(0, p.debt-time.Duration(share*float64(now.Sub(p.at)))) + took
	p.at = now
	if nap = time.Duration(float64(p.debt-paceBurst) / share); nap < minNap {
		return 0
	}
	return min(maxNap, nap)
}
