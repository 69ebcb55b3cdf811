// Package call runs one prepared call: one goroutine owns it and changes its state by
// the table in state.go; pipes, stream, timers, cgroup events and aborts only send to
// it. owner.go is a call from its beginning to its end.
package call

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
)

// Base is what a call needs of its supervisor.
type Base struct {
	// Enter waits until the call may run, and says for how long, or 0; leave gives that back.
	Enter func(ctx context.Context) (leave func(), left time.Duration, err error)
	// Take gives a call what there is for it without a wait. A nil Peer is for a tree that
	// Start must have served first, a nil Tree for one that it must bring up.
	Take func(c *Call) (Tree, Peer)
	// Start brings the tool up and reports that to the call. It ends with its context.
	Start func(ctx context.Context, c *Call)
	// Reached says what the network came to; nil for nothing.
	Reached Reached
	// Ending is nil where there is no network to end.
	Ending Ending
	// Load is that of the gate for calls.
	Load func() (running, waiting int)
	// Stuck counts the calls that were given up, and are not gone.
	Stuck *atomic.Int64
	// Looks bounds those for paths that were not granted, and Hidden are the folders
	// that no result names.
	Looks    chan struct{}
	Hidden   func() []string
	SpillDir string // takes output that is cut; empty is nowhere
	// SpillTotal bounds all that is there; negative means any.
	SpillTotal int64
	Tasks      *tasks.Tasks
	Log        hclog.Logger
}

// Call is a call that has been made. Its methods may be used from any goroutine.
type Call struct {
	Base
	p      *prepare.Prepared
	events *publish.Publisher
	output *streams

	left   time.Duration // once it has waited, the owner's; 0 is no bound
	inbox  chan input
	aborts chan api.Reason      // the newest ones; two of them kill
	live   atomic.Pointer[Tree] // set by the owner, for Current
	over   chan struct{}        // closed when the owner takes no more inputs
	ending atomic.Bool          // what the tool sends is late, and not held up
	done   chan struct{}        // closed when result is made, after over
	gone   chan struct{}        // closed after done, when no process of the call is left
	result *api.Result
	// launching: the starter has asked for a process, or let one act that was there
	// before. spawned is what it got, to be read when it has ended.
	launching atomic.Bool
	spawned   Tree
	// making ends when the result has no more time to become complete in.
	making     context.Context
	stopMaking context.CancelCauseFunc
	// responded is what a describing call brought back, readable after done.
	responded *pluginv1.DescribeResponse
	sleep     func(until time.Time) // see alarm
}

// New makes the call of what is prepared, which it closes in the end. Run or Refuse
// must follow.
func New(p *prepare.Prepared, base Base) *Call {
	c := &Call{
		Base: base, p: p, inbox: make(chan input), aborts: make(chan api.Reason, 2),
		over: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}), sleep: sleepUntil,
	}
	args := p.Request.LogArgs
	if len(args) == 0 {
		args = []any{"call", p.ID}
	}
	c.Log = base.Log.With(args...)
	c.making, c.stopMaking = context.WithCancelCause(context.Background())
	c.events = publish.New(p.Request.Events, p.ID, p.Label, p.Request.EventOutputBytes)
	c.output = newStreams(c)
	return c
}

// timeout is the one in force, by now.
func (c *Call) timeout() budget.Resolution {
	if c.left <= 0 {
		return c.p.Timeout
	}
	return c.p.Timeout.Within(c.left, "what is left of the turn")
}

// Refuse makes the result of a call that never begins.
func (c *Call) Refuse(why error) {
	r := c.p.Blank()
	c.judge(r, outcome.Evidence{StartErr: why}, 0)
	if refused, ok := errors.AsType[*outcome.Refusal](why); ok {
		c.hintAtDescribed(r, refused.Describing)
		refused.Word(r, c.p.Terms(0))
	}
	c.p.Close()
	c.events.Publish(api.Event{Kind: api.EventQueued})
	c.answer(r)
	close(c.over)
	close(c.done)
	close(c.gone)
}

// ID is the call's, as in its events and result.
func (c *Call) ID() string { return c.p.ID }

// Done is closed when the result is there.
func (c *Call) Done() <-chan struct{} { return c.done }

// Gone is closed when no process of the call's is left either.
func (c *Call) Gone() <-chan struct{} { return c.gone }

// Result waits for the result.
func (c *Call) Result() *api.Result {
	<-c.done
	return c.result
}

// Responded is what a Describe has brought back; nil if that is nothing. It may be
// called after Done.
func (c *Call) Responded() *pluginv1.DescribeResponse { return c.responded }

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

// HadProcesses says whether there were any, of a call that is over.
func (c *Call) HadProcesses() bool { return c.live.Load() != nil }

// Current is what the call's processes use at this moment; ok is false before
// the call has processes, and after.
func (c *Call) Current() (now cgroup.Current, ok bool) {
	live := c.live.Load()
	if live == nil || closed(c.done) {
		return cgroup.Current{}, false
	}
	now, err := (*live).Current()
	return now, err == nil
}

// answer publishes the result and makes it known.
func (c *Call) answer(r *api.Result) {
	kind := api.EventFailed
	if r.OK() {
		kind = api.EventFinished
	}
	c.events.Publish(api.Event{Kind: kind, Status: r.Status, ElapsedMs: r.Timing.ElapsedMs, Display: r.Display()})
	c.result = r
}

// judge makes the judgement and everything that follows from it.
func (c *Call) judge(r *api.Result, e outcome.Evidence, silence time.Duration) {
	t := c.p.Terms(silence)
	t.Timeout, t.Max = c.timeout().Timeout, c.timeout().Max
	e.Judge(r, t)
	c.hintAtGrants(r)
	hintAtNetwork(r)
	c.p.Mask.Result(r)
	e.Word(r, t)
}

// blank is a result with what is known before the end.
func (c *Call) blank(warnings []string) *api.Result {
	r := c.p.Blank()
	if own, t := c.timeout(), &r.Timing; own.Timeout != c.p.Timeout.Timeout {
		t.TimeoutMs, t.SoftBudgetMs = new(own.Timeout.Milliseconds()), own.SoftBudget.Milliseconds()
		t.Source, t.SourceDetail, t.Clamped = string(own.Source), own.SourceDetail, own.Clamped
	}
	r.Warnings = append([]string{}, slices.Clone(warnings)...)
	return r
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
