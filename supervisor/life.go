package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
	"github.com/toolhost/toolhost/supervisor/internal/veil"
)

const (
	// meetTime is how long the end of the stream and the exit of the process,
	// or a result, wait for one another: they come on different ways.
	meetTime = time.Second
	// settleTime is how long the pipes are drained after death.
	settleTime = 250 * time.Millisecond
)

// progressEvery is the beat of progress events in a long call.
const progressEvery = 5 * time.Second

// life is a call's mutable state, owned by its loop.
type life struct {
	state  state
	events *publish.Publisher
	alarm  *alarm
	clock  budget.Clock

	release    func() // of the slot
	leaveQueue context.CancelFunc
	cancelWork context.CancelFunc // ends start-up and stream; only after the kill
	started    chan struct{}      // closed when the starter has ended
	spawned    Tree               // the starter's; read after started is closed
	lifetime   context.Context    // ends when the call has its result
	end        context.CancelFunc
	helpers    sync.WaitGroup // goroutines that end with lifetime

	tree  Tree          // nil until there are processes
	after *cgroup.Usage // what they had used when they were released alive

	conn   Peer
	output *output
	acks   *replies
	marks  marks

	cause    outcome.Cause
	reason   api.Reason    // within the cause
	silence  time.Duration // that was allowed then
	final    *pluginv1.Result
	startErr error
	// streamOver and streamErr, exit and exited: how the tool's side ended.
	streamOver, exited bool
	streamErr          error
	exit               syscall.WaitStatus
	exitOurs           bool // and not by itself
	uncertain          bool // whether the tool's program has begun
	outputOver         bool
	content            *capture.Items
	contentVeil        *veil.Stream
	// Of a command tool: what its stdout came to, and its exit status means.
	structured  json.RawMessage
	outputErr   error
	unfit       bool // some JSON among the content is kept as text
	exitOK      bool
	exitJudged  bool
	exitMessage string

	kill struct {
		signals   []string
		seen      map[int]struct{} // processes of the tool met on the ladder
		survivors int
	}
	startBy, settleAt, progressAt, cpuAt time.Time
	overran, hurried                     bool
	questions                            int // that wait for an answer
}

// marks are the points in time that a result's timing is made of.
type marks struct {
	created, admitted, ready, stop, term, kill, empty, done time.Time
}

// begin makes the loop's state and returns the context of the wait for a slot.
func (c *Call) begin() context.Context {
	c.marks.created = time.Now()
	c.content, c.contentVeil = capture.NewItems(c.p.Bounds.OutputBytes), c.p.Veil.Stream()
	c.kill.seen = map[int]struct{}{}
	c.events.Publish(api.Event{Kind: api.EventQueued})
	c.lifetime, c.end = context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(c.lifetime)
	c.leaveQueue = cancel
	return ctx
}

// to makes the transition that t leads to; false if the table has none.
func (c *Call) to(t trigger) bool {
	state, ok := next(c.state, t)
	if !ok {
		return false
	}
	c.state = state
	c.ending.Store(state >= stateStopping)
	return true
}

// take handles one input. Every case either changes the state by the table or
// only records something.
func (c *Call) take(in input) {
	now := time.Now()
	switch in.kind {
	case inAdmitted:
		c.onAdmitted(in.release, now)
	case inRefused:
		c.onRefused(in.err)
	case inSpawned:
		c.onSpawned(in.tree)
	case inConnected:
		c.onConnected(in.conn, now)
	case inStartFailed:
		c.onStartFailed(in.err, now)
	case inEvent:
		c.onEvent(in, now)
	case inStreamEnded:
		c.onStreamEnded(in, now)
	case inExited:
		c.onExited(in.exit, now)
	case inOOM:
		c.stop(outcome.CauseOOM, api.ReasonMemory, now)
	case inOutputTotal:
		c.stop(outcome.CauseOutputTotal, api.ReasonOutputTotal, now)
	case inEmptied:
		c.onEmptied(now)
	case inAnswered:
		c.onAnswered(in, now)
	case inContent:
		c.onContent(in)
	case inCollateral:
		c.stop(outcome.CauseCollateral, api.ReasonCollateral, now)
	case inOutputEnded:
		c.outputOver = true
		c.tryDrained()
	}
}

func (c *Call) onAdmitted(release func(), now time.Time) {
	if !c.to(admitted) {
		release()
		return
	}
	c.release = func() {
		release()
		close(c.gone)
	}
	c.marks.admitted, c.startBy = now, now.Add(c.p.StartTimeout)
	c.clock = budget.NewClock(now, budget.ClockSpec{
		Timeout: c.p.Timeout.Timeout, Soft: c.p.Timeout.SoftBudget, Stream: c.p.Request.Stream,
	})
	ctx, cancel := context.WithCancel(context.Background())
	c.cancelWork, c.started = cancel, make(chan struct{})
	c.output = newOutput(c)
	c.acks = newReplies(c.id)
	c.leaveQueue()
	c.s.tasks.Run("start", func() {
		defer close(c.started)
		c.start(ctx)
	})
}

func (c *Call) onRefused(err error) {
	if c.to(refused) {
		c.startErr = err
	}
}

// onSpawned takes over the processes. If the call has been stopped in the
// meantime they are killed.
func (c *Call) onSpawned(t Tree) {
	c.tree = t
	c.live.Store(&t)
	if c.p.Bounds.CPUTime > 0 {
		c.cpuAt = time.Now()
	}
	if c.state >= stateKilling {
		c.warnOf("cannot kill all of the call at once", t.Kill())
	}
}

func (c *Call) onConnected(conn Peer, now time.Time) {
	c.conn = conn
	if !c.to(connected) {
		c.startErr = cmp.Or(c.startErr, outcome.ErrEndedStarting)
		c.streamOver = true // it has not begun
		c.killNow(startFailed, now)
		return
	}
	c.marks.ready = now
	if s := c.p.Service; s != nil {
		c.s.tasks.Run("serve the tool", func() { c.p.Request.Host(s.Listener) })
	}
	c.clock.Started(now)
	c.progressAt = now.Add(progressEvery)
	c.events.Publish(api.Event{Kind: api.EventStarted, TimeoutMs: budget.Milliseconds(c.p.Timeout.Timeout)})
	c.acks.serve(conn)
	if c.line != nil {
		c.moveTimer(now)
		c.tree.Share(c.p.Request.Lock.File != "")
	}
	request := c.p.CallRequest(c.timeLeft(now))
	c.s.tasks.Run("stream", func() { c.stream(c.lifetime, conn, request) })
}

func (c *Call) onStartFailed(err error, now time.Time) {
	c.uncertain = c.uncertain || errors.Is(err, sandbox.ErrUncertain)
	c.startErr = cmp.Or(c.startErr, err) // the later one is what came of the first
	c.streamOver = true
	c.outputOver = c.outputOver || c.tree == nil // nobody reads what nobody writes
	c.killNow(startFailed, now)
}

func (c *Call) onStreamEnded(in input, now time.Time) {
	c.streamOver, c.streamErr = true, in.err
	if in.response != nil {
		c.responded = in.response
		c.final = &pluginv1.Result{}
	}
	if cutOff(in.err) && c.cause == outcome.CauseNone {
		c.killNow(ended, now)
		return
	}
	c.settle(now)
	c.tryDrained()
}

// cutOff: the host has ended the stream, so the tool may not know that it is over.
func cutOff(err error) bool {
	var broken *host.ProtocolError
	var full *host.MemoryError
	return errors.As(err, &broken) || errors.As(err, &full)
}

// onExited records the end of the tool's own process. A SIGKILL of the clean-up
// is neither the tool's doing nor the ladder's.
func (c *Call) onExited(status syscall.WaitStatus, now time.Time) {
	ladder := c.cause != outcome.CauseNone && slices.Contains(c.kill.signals, "SIGKILL")
	ours := c.wasKilled() && !ladder && status.Signaled() && status.Signal() == syscall.SIGKILL
	if ours && c.state >= stateKilling {
		return
	}
	c.exited, c.exit, c.exitOurs = true, status, ours
	c.settle(now)
}

func (c *Call) onAbort(reason api.Reason, now time.Time) {
	switch c.state {
	case stateQueued:
		c.cause, c.reason = outcome.CauseAbort, reason
		c.leaveQueue()
		c.onRefused(errAborted)
	case stateStopping:
		c.killNow(killRequested, now)
	case stateDraining:
		c.to(killRequested) // whoever reads the output is not waited for
	default:
		c.stop(outcome.CauseAbort, reason, now)
	}
}

var errAborted = errors.New("aborted before it began")

// settle ends the call once both the stream and the process are over, or the
// stream with a result; if only one is, the other gets meetTime.
func (c *Call) settle(now time.Time) {
	complete := c.final != nil && c.streamOver
	switch {
	case complete && c.giveBack(now):
	case complete, c.streamOver && c.exited:
		c.killNow(ended, now)
	case c.settleAt.IsZero() && (c.streamOver || c.exited || c.final != nil):
		c.settleAt = now.Add(meetTime)
	}
}

// errWrapper is why a tool never answers though something of it lives on.
var errWrapper = errors.New("the tool's own process ended before its handshake, and another one holds its output: start the tool itself, with exec in a shell script")

// endAlone ends a call of whose two halves only one has come in time.
func (c *Call) endAlone(now time.Time) {
	if c.state == stateStarting {
		c.onStartFailed(errWrapper, now)
		return
	}
	c.killNow(ended, now)
}

// giveBack leaves a kept process alive after a call that has ended well. What
// the call has written so far is still its own.
func (c *Call) giveBack(now time.Time) bool {
	if c.line == nil || c.state != stateRunning || c.streamErr != nil || c.exited || !c.tree.MayLiveOn() {
		return false
	}
	if c.responded.GetError() != nil { // what it describes could not be started
		return false
	}
	c.after = new(c.usage())
	c.marks.stop, c.marks.empty, c.settleAt = now, now, now.Add(settleTime)
	c.to(released)
	taken := c.tree.OutputTaken()
	c.helpers.Go(func() {
		for _, found := range taken {
			select {
			case <-found:
			case <-c.lifetime.Done():
			}
		}
		c.send(input{kind: inOutputEnded})
	})
	return true
}

// timeLeft is how long the call may take from now on; 0 has no end.
func (c *Call) timeLeft(now time.Time) time.Duration {
	at, ok := c.clock.Deadline()
	if !ok {
		return 0
	}
	return max(at.Sub(now), 1)
}
