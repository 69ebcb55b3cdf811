// Package cpus has a process run on one processor for as long as that is enough and little
// is under way at once.
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
	"syscall"
	"time"
)

const (
	// window is the least time over which it is looked at what the process has used.
	window = 20 * time.Millisecond
	// One processor is left where more than nine tenths of it was used, and returned to
	// where less than half of one was.
	leaveAt, returnAt = 0.9, 0.5
	// few is how much may be under way at once on one processor. A caller of one call after
	// another has up to two: what a call held is freed beside the next one. From three such
	// callers on, they wait for one another.
	few = 4
	// quiet is how long nothing may begin or end on one processor: what runs then is not
	// looked at, and may compute, or wait for what must be seen in time.
	quiet = 50 * time.Millisecond
)

// Spare lets the process have one processor while that is enough for what it does, and
// that is little at once, by [Busy]. It is for programs, not for packages: the number of
// processors is the process's. A number that the environment sets (GOMAXPROCS) stays.
func Spare() {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	process.used, process.narrow, process.widen = used, narrow, widen
}

func narrow() {
	runtime.GOMAXPROCS(1)
	slacken(longSlack)
}

func widen() {
	slacken(usualSlack)
	runtime.SetDefaultGOMAXPROCS()
}

// used is the CPU time that the process has had.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail (getrusage(2))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Busy says that something is begun, such as a call; done, that it is over. It does
// nothing in a process without Spare.
func Busy() (done func()) {
	if !process.changes(1) {
		return func() {}
	}
	return sync.OnceFunc(func() { process.changes(-1) })
}

var process governor

// governor decides how many processors there are. Its zero value decides nothing.
type governor struct {
	mu            sync.Mutex
	used          func() time.Duration
	narrow, widen func() // to one, and to all; nil without Spare

	one    bool          // there is one processor
	doing  int           // what has begun and is not over
	most   int           // the most of that since it was last looked
	looked time.Time     // when it was last looked at what was used,
	before time.Duration // which was this
	late   *time.Timer   // when it has been quiet for too long
}

// changes counts what begins or ends, and has the number of processors follow. It is false
// if nothing is decided.
func (g *governor) changes(by int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.widen == nil {
		return false
	}
	g.doing += by
	g.most = max(g.most, g.doing)
	if now := time.Now(); now.Sub(g.looked) >= window {
		g.look(now)
	}
	g.wait()
	return true
}

// look has one processor where that was enough since the last look.
func (g *governor) look(now time.Time) {
	used := g.used()
	share := float64(used-g.before) / float64(now.Sub(g.looked))
	many := g.most > few
	g.looked, g.before, g.most = now, used, g.doing
	switch {
	case g.one && (many || share > leaveAt):
		g.all()
	case !g.one && !many && share < returnAt:
		g.one = true
		g.narrow()
	}
}

func (g *governor) all() {
	g.one = false
	g.widen()
}

// wait begins to wait for the next change, if there is to be one.
func (g *governor) wait() {
	switch {
	case !g.one || g.doing == 0:
		if g.late != nil {
			g.late.Stop()
		}
	case g.late == nil:
		g.late = time.AfterFunc(quiet, g.isQuiet)
	default:
		g.late.Reset(quiet)
	}
}

func (g *governor) isQuiet() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.one && g.doing > 0 {
		g.all()
	}
}
