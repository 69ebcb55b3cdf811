package supervisor

import (
	"context"
	"crypto/rand"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Call is a call that has been started. Its methods may be used from any
// goroutine.
type Call struct {
	s       *Supervisor
	request Request
	id      string
	profile budget.Profile

	// What preparation found, before the loop begins.
	binary  binary
	command binary // a command's own, where a path or hash names it
	surroundings
	filesTo     *os.Root // where the workspace's files go; nil for nowhere
	description *pluginv1.ToolDescription
	arguments   []byte
	hints       []budget.Ask // the model's
	resolution  budget.Resolution
	grace       time.Duration
	limits      Limits
	warnings    []string
	describes   bool // the work is Describe, not Call
	explains    bool // nothing is to run, so there are no arguments

	inbox  chan input
	done   chan struct{} // closed when result is made
	result *Result
	// responded is what a describing call brought back, readable after done.
	responded *pluginv1.DescribeResponse

	life // owned by the loop
}

// inputKind says what a sender has to tell the owner.
type inputKind int

const (
	inAdmitted inputKind = iota
	inRefused
	inSpawned
	inConnected
	inStartFailed
	inEvent
	inStreamEnded
	inExited
	inOOM
	inOutputTotal
	inAbort
	inEmptied
	inOutputEnded
	inAnswered
)

// input is one message to the owner; only the fields of its kind are set.
type input struct {
	kind     inputKind
	err      error
	tree     *tree
	conn     *host.Conn
	event    *pluginv1.CallEvent
	response *pluginv1.DescribeResponse
	exit     syscall.WaitStatus
	reason   AbortReason
	release  func()
	question string
	answer   Answer
}

func (s *Supervisor) newCall(request Request) *Call {
	c := &Call{
		s: s, request: request, id: request.ID, profile: s.config.Profile,
		inbox: make(chan input), done: make(chan struct{}),
	}
	if c.id == "" {
		c.id = rand.Text()
	}
	c.events = &publisher{to: request.Events, callID: c.id, tool: request.toolName()}
	return c
}

func (r Request) toolName() string {
	switch {
	case r.Command != nil && len(r.Command.Argv) > 0:
		return baseName(r.Command.Argv[0])
	case r.Tool.Name != "":
		return r.Tool.Name
	}
	return baseName(r.Tool.Path)
}

// ID is the call's, as in its events and result.
func (c *Call) ID() string { return c.id }

// Done is closed when the result is there.
func (c *Call) Done() <-chan struct{} { return c.done }

// Result waits for the result.
func (c *Call) Result() *Result {
	<-c.done
	return c.result
}

// Abort begins the kill ladder; a second abort while it runs kills at once.
// Aborting a call that is over does nothing.
func (c *Call) Abort(reason AbortReason) { c.send(input{kind: inAbort, reason: reason}) }

// send hands something to the owner, or to nobody if the call is over.
func (c *Call) send(in input) bool {
	select {
	case c.inbox <- in:
		return true
	case <-c.done:
		return false
	}
}

// run is the owner: the only goroutine that touches c.life. It ends with the
// result.
func (c *Call) run(ctx context.Context) {
	defer c.s.unregister(c) // when nothing of the call is left
	stop := context.AfterFunc(ctx, func() { c.Abort(abortReason(ctx)) })
	defer stop()
	go c.enter(c.begin())
	for c.state != stateDone {
		c.alarm.set(c.nextWake())
		select {
		case in := <-c.inbox:
			c.take(in)
		case <-c.alarm.fired:
		}
		c.checkClocks(time.Now())
	}
	c.alarm.stop()
	c.finish()
}

func abortReason(ctx context.Context) AbortReason {
	if ctx.Err() == context.DeadlineExceeded {
		return AbortTimeout
	}
	return AbortUser
}

// enter waits for a slot.
func (c *Call) enter(ctx context.Context) {
	release, err := c.s.gate.Acquire(ctx)
	if err != nil {
		c.send(input{kind: inRefused, err: err})
		return
	}
	if !c.send(input{kind: inAdmitted, release: release}) {
		release()
	}
}
