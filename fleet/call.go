package fleet

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

// Call is a call that has been started. Its methods are safe for concurrent use.
type Call struct {
	id     string
	done   chan struct{}
	gone   chan struct{}
	result *api.Result // written before done is closed
	aborts chan api.Reason
	given  atomic.Bool // a worker was told to start it

	mu      sync.Mutex
	aborted int
	reason  api.Reason
	here    *supervisor.Call // once it runs on this machine
}

// newCall is of a request that has an id.
func newCall(id string) *Call {
	return &Call{id: id, done: make(chan struct{}), gone: make(chan struct{}), aborts: make(chan api.Reason, 2)}
}

// runs hands the call to this machine's supervisor.
func (c *Call) runs(here *supervisor.Call) { c.runsAfter(here, 0, func() {}) }

// runsAfter is runs for a call that has looked for a worker before, or brings a slot, which
// release gives back.
func (c *Call) runsAfter(here *supervisor.Call, waited time.Duration, release func()) {
	c.mu.Lock()
	c.here = here
	for range c.aborted {
		here.Abort(c.reason)
	}
	c.mu.Unlock()
	go func() {
		result := here.Result()
		if waited > 0 {
			own := *result
			own.Timing.QueueMs += waited.Milliseconds()
			if !own.Marks.Queued.IsZero() {
				own.Marks.Queued = own.Marks.Queued.Add(-waited)
			}
			result = &own
		}
		c.answer(result)
		<-here.Gone()
		release()
		close(c.gone)
	}()
}

// refuse ends a call that nobody makes, with its events.
func (c *Call) refuse(r supervisor.Request, result *api.Result) {
	events := relayOf(r)
	events.end(result)
	c.finish(result)
}

// finish ends a call that does not run on this machine.
func (c *Call) finish(r *api.Result) {
	c.answer(r)
	if nothingRuns(r) {
		close(c.gone)
	}
}

// nothingRuns says whether it is known that no process of a call is left.
func nothingRuns(r *api.Result) bool {
	if r.Status == api.StatusLost {
		return r.Where.StillRunning == "no"
	}
	return r.Kill.Survivors == 0
}

func (c *Call) answer(r *api.Result) {
	c.result = r
	close(c.done)
	runtime.Gosched() // who waits for the result may go first
}

// ID returns the ID of the call in its events and result.
func (c *Call) ID() string { return c.id }

// Done returns a channel that is closed when the result is ready.
func (c *Call) Done() <-chan struct{} { return c.done }

// Gone returns a channel that is closed when the result is ready and the call has no process
// left. If that is unknown it stays open: for a call that is lost, that its worker could not
// kill, or that was given up at another worker before.
func (c *Call) Gone() <-chan struct{} { return c.gone }

// Current returns what the call's processes use now, like supervisor.Call's; ok is also false
// for a call at a worker.
func (c *Call) Current() (now cgroup.Current, ok bool) {
	c.mu.Lock()
	here := c.here
	c.mu.Unlock()
	if here == nil {
		return now, false
	}
	return here.Current()
}

// Result waits for the result and returns it.
func (c *Call) Result() *api.Result {
	<-c.done
	return c.result
}

// Abort starts the kill ladder on the machine that runs the call; a second Abort kills at
// once. After the end of the call it does nothing. Abort does not wait.
func (c *Call) Abort(reason api.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.here != nil {
		c.here.Abort(reason)
		return
	}
	if c.aborted == 0 {
		c.reason = reason
	}
	if c.aborted < 2 {
		c.aborted++
		c.aborts <- c.reason
	}
}
