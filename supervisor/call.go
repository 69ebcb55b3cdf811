package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
)

// Call is a call that has been started. Its methods may be used from any
// goroutine.
type Call struct {
	s    *Supervisor
	id   string
	p    *prepare.Prepared
	line *kept.Line // for a kept process; nil for one of the call's own
	// warnings are the result's.
	warnings []string

	inbox  chan input
	aborts chan api.Reason      // the newest ones; two of them kill
	live   atomic.Pointer[Tree] // set by the loop, for Current
	over   chan struct{}        // closed when the owner takes no more inputs
	ending atomic.Bool          // what the tool sends is late, and not held up
	done   chan struct{}        // closed when result is made, after over
	gone   chan struct{}        // closed after done, when no process of the call is left
	result *api.Result
	// launching: the starter has asked for a process.
	launching atomic.Bool
	// making ends when the result has no more time to become complete in.
	making     context.Context
	stopMaking context.CancelCauseFunc
	// responded is what a describing call brought back, readable after done.
	responded *pluginv1.DescribeResponse

	// start brings the tool up, and reports that to the owner. It ends with its context.
	start func(context.Context)

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
	inEmptied
	inOutputEnded
	inAnswered
	inCollateral
	inContent
)

// input is one message to the owner; only the fields of its kind are set.
type input struct {
	kind     inputKind
	err      error
	tree     Tree
	conn     Peer
	event    *pluginv1.CallEvent
	judged   judged // of event, or of content and structured
	response *pluginv1.DescribeResponse
	exit     syscall.WaitStatus
	release  func()
	content  []api.Content
	// structured, warning and err come with the last content of a command; warning
	// with an answer, too.
	structured json.RawMessage
	warning    string
	question   string
	answer     Answer
}

func (s *Supervisor) newCall(p *prepare.Prepared) *Call {
	c := &Call{
		s: s, p: p, id: p.ID, warnings: slices.Clone(p.Warnings),
		inbox: make(chan input), aborts: make(chan api.Reason, 2), over: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}),
	}
	c.making, c.stopMaking = context.WithCancelCause(context.Background())
	c.events = publish.New(p.Request.Events, c.id, p.Label, p.Request.EventOutputBytes)
	c.start, c.alarm = c.bringUp, newAlarm(sleepUntil)
	return c
}

// ID is the call's, as in its events and result.
func (c *Call) ID() string { return c.id }

// Done is closed when the result is there.
func (c *Call) Done() <-chan struct{} { return c.done }

// Gone is closed when the result is there and no process of the call's is left: of
// one that could not be killed that is later, if ever. A process that is kept for
// other calls is theirs.
func (c *Call) Gone() <-chan struct{} { return c.gone }

// Result waits for the result.
func (c *Call) Result() *api.Result {
	<-c.done
	return c.result
}

// Abort begins the kill ladder; a second abort while it runs kills at once. One
// that comes while the result is made cuts short what takes long there. Aborting
// a call that is over does nothing. It never waits.
func (c *Call) Abort(reason api.Reason) {
	select {
	case c.aborts <- reason:
	default: // two are under way already, and a third changes nothing
	}
	if closed(c.over) {
		c.stopMaking(errAbortedLate)
	}
}

var errAbortedLate = errors.New("the call was aborted")

// send hands something to the owner, or to nobody if the call is over.
func (c *Call) send(in input) bool {
	select {
	case c.inbox <- in:
		return true
	case <-c.over:
		return false
	}
}

// run is the owner: the only goroutine that touches c.life. It ends with the
// result.
func (c *Call) run(ctx context.Context) {
	defer c.s.unregister(c) // when nothing of the call is left
	defer c.line.Part()
	defer c.p.Close()
	stop := context.AfterFunc(ctx, func() { c.Abort(outcome.AbortReason(ctx)) })
	defer stop()
	queue := c.begin()
	c.s.tasks.Run("enter", func() { c.enter(queue) })
	for c.state != stateDone {
		c.alarm.set(c.nextWake())
		select {
		case in := <-c.inbox:
			c.take(in)
		case reason := <-c.aborts:
			c.onAbort(reason, time.Now())
		case <-c.alarm.fired:
			c.alarm.rang()
		}
		c.checkClocks(time.Now())
	}
	c.alarm.stop()
	c.retire()
	c.finish()
}

// retire ends the owner's part: senders of input no longer wait for it, and
// its state belongs to finish.
func (c *Call) retire() {
	close(c.over)
	if len(c.aborts) > 0 {
		c.stopMaking(errAbortedLate)
	}
}

// slot waits for one of the call's pool, and then for one of all.
func (c *Call) slot(ctx context.Context) (release func(), err error) {
	if c.p.Describes() {
		return c.s.describeGate.Acquire(ctx)
	}
	leave, err := c.s.pools.enter(ctx, c.p.Request.Pool)
	if err != nil {
		return nil, err
	}
	free, err := c.s.gate.Acquire(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	return func() { free(); leave() }, nil
}

// enter waits for a kept process and for a lock, if the call wants them, and then
// for a slot: a call with a slot waits for nothing else.
func (c *Call) enter(ctx context.Context) {
	leave, err := c.line.Enter(ctx, c.p.Request.Keep != nil && c.p.Request.Keep.Shared, c.lockWait())
	if err != nil {
		c.send(input{kind: inRefused, err: err})
		return
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		leave()
		c.send(input{kind: inRefused, err: err})
		return
	}
	release, err := c.slot(ctx)
	if err != nil {
		unlock()
		leave()
		c.send(input{kind: inRefused, err: err})
		return
	}
	all := func() { release(); unlock(); leave() }
	if !c.send(input{kind: inAdmitted, release: all}) {
		all()
	}
}
