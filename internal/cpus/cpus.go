// Package cpus has a process that does one short thing at a time run on one
// processor.
//
// Where a processor is idle, Go's scheduler wakes a thread for each goroutine that becomes
// runnable. The goroutines of a call hand it to one another, so these threads find nothing
// to do: each costs system calls, and often an interrupt to another processor, within the
// time that the call takes.
package cpus

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// long is how old what is done may get on one processor: it may compute, or wait for
	// what must be seen in time.
	long = 50 * time.Millisecond
	// settled is how long one thing at a time must have been done before a processor is
	// enough, so that no burst changes their number with each of its calls.
	settled = 100 * time.Millisecond
)

// Spare lets the process have one processor while it does one short thing at a time, by
// [Busy]. It is for programs, not for packages: the number of processors is the process's.
// A number that the environment sets (GOMAXPROCS) stays.
func Spare() {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	process.narrow, process.widen = func() { runtime.GOMAXPROCS(1) }, runtime.SetDefaultGOMAXPROCS
}

// Busy says that something is begun, such as a call; done, that it is over. It does
// nothing in a process without Spare.
func Busy() (done func()) { return process.busy() }

var process governor

// governor decides how many processors there are. Its zero value decides nothing.
type governor struct {
	mu            sync.Mutex
	narrow, widen func() // to one, and to all; nil without Spare

	one     bool        // there is one processor
	doing   int         // what has begun and is not over
	since   time.Time   // when there was something to do again
	crowded time.Time   // when one was last not enough
	late    *time.Timer // while there is one processor and something to do
}

func (g *governor) busy() (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.widen == nil {
		return func() {}
	}
	if g.doing++; g.doing == 1 {
		g.since = time.Now()
		g.beginOne()
	} else {
		g.all()
	}
	return sync.OnceFunc(g.done)
}

// beginOne is for what is alone.
func (g *governor) beginOne() {
	if !g.one && g.since.Sub(g.crowded) > settled {
		g.one = true
		g.narrow()
	}
	if g.one {
		g.late = time.AfterFunc(long, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.doing > 0 && time.Since(g.since) >= long {
				g.all()
			}
		})
	}
}

func (g *governor) all() {
	if g.one {
		g.one = false
		g.late.Stop()
		g.widen()
	}
}

func (g *governor) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.doing > 1 || now.Sub(g.since) >= long {
		g.crowded = now
	}
	if g.doing--; g.doing == 0 && g.one {
		g.late.Stop()
	}
}
