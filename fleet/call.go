package fleet

import (
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Call is a call that has been started. Its methods may be used from any goroutine.
type Call struct {
	id     string
	done   chan struct{}
	result *api.Result // written before done is closed
	aborts chan api.Reason

	mu      sync.Mutex
	aborted int
	reason  api.Reason
	here    *supervisor.Call // once it runs on this machine
}

// newCall is of a request that has an id.
func newCall(id string) *Call {
	return &Call{id: id, done: make(chan struct{}), aborts: make(chan api.Reason, 2)}
}

// runs hands the call to this machine's supervisor.
func (c *Call) runs(here *supervisor.Call) {
	c.mu.Lock()
	c.here = here
	for range c.aborted {
		here.Abort(c.reason)
	}
	c.mu.Unlock()
	go func() { c.finish(here.Result()) }()
}

func (c *Call) finish(r *api.Result) {
	c.result = r
	close(c.done)
}

// ID is the call's, as in its events and result.
func (c *Call) ID() string { return c.id }

// Done is closed when the result is there.
func (c *Call) Done() <-chan struct{} { return c.done }

// Result waits for the result.
func (c *Call) Result() *api.Result {
	<-c.done
	return c.result
}

// Abort begins the kill ladder, where the call runs; a second abort kills at once.
// Aborting a call that is over does nothing. It never waits.
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
