package call

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// input is something that the owner is told, with what it does about that. It either
// moves the call by the table or only records something.
type input interface{ take(o *owner, now time.Time) }

// send hands something to the owner; false if the call is over.
func (c *Call) send(in input) bool {
	select {
	case c.inbox <- in:
		return true
	case <-c.over:
		return false
	}
}

// The inputs, in the order in which a call has them.
type (
	admittedEntry struct {
		leave func()
		left  time.Duration
	}
	refusedEntry struct{ err error }

	spawned    struct{ tree Tree }
	connection struct{ conn Peer }
	failure    struct{ err error }

	sent struct {
		event *pluginv1.CallEvent
		cleaned
	}
	answered struct {
		question, warning string
		answer            *pluginv1.AnswerRequest
	}
	// commandContent is what a command's stdout was read as. What comes with the last
	// of it is zero before.
	commandContent struct {
		content []api.Content
		cleaned
		last commandEnd
	}
	commandEnd struct {
		structured json.RawMessage
		warning    string
		err        error
	}
	// breach is a limit that the call has hit, or another call's kill.
	breach struct {
		cause  outcome.Cause
		reason api.Reason
	}

	streamEnded struct {
		err      error
		response *pluginv1.DescribeResponse
	}
	exited       struct{ status syscall.WaitStatus }
	outputEnded  struct{}
	groupEmptied struct{}
)

func (in admittedEntry) take(o *owner, now time.Time) {
	select {
	case reason := <-o.aborts: // it came before the slot
		o.onAbort(reason, now)
	default:
	}
	if o.found.Cause != outcome.CauseNone { // aborted as it came
		in.leave()
		o.to(refused, now)
		return
	}
	o.left = in.left
	if now, was := o.timeout().Timeout, o.p.Timeout.Timeout; now < was {
		o.warn(fmt.Sprintf("timeout %s is longer than the %s that are left of the turn after the wait for a slot: %s is used", budget.Format(was), budget.Format(now), budget.Format(now)))
	}
	if !o.to(admitted, now) {
		in.leave()
		return
	}
	o.release = func() {
		in.leave()
		close(o.gone)
	}
}

func (in refusedEntry) take(o *owner, now time.Time) {
	o.found.StartErr = cmp.Or(o.found.StartErr, in.err)
	o.to(refused, now)
}

// take takes over the processes. If the call has been stopped in the meantime they
// are killed, and have as long to die as those that were there in time.
func (in spawned) take(o *owner, now time.Time) {
	o.tree, o.marks.born = in.tree, now
	o.live.Store(&o.tree)
	if o.p.Bounds.CPUTime > 0 {
		o.cpuAt = now
	}
	if o.state >= stateKilling {
		o.killTree(false)
	}
}

func (in connection) take(o *owner, now time.Time) {
	o.tool.conn = in.conn
	if !o.to(connected, now) {
		o.failStart(outcome.ErrEndedStarting, now)
	}
}

func (in failure) take(o *owner, now time.Time) {
	o.uncertain = o.uncertain || errors.Is(in.err, sandbox.ErrUncertain)
	o.failStart(in.err, now)
}

func (in sent) take(o *owner, now time.Time) { o.onEvent(in.event, in.cleaned, now) }

func (in answered) take(o *owner, now time.Time) {
	o.tool.questions--
	o.warn(in.warning)
	o.clock.Resumed(now)
	o.moveTimer(now)
	o.tool.reply(in.answer)
}

func (in commandContent) take(o *owner, _ time.Time) {
	for _, content := range in.content {
		o.content.keep(content)
	}
	o.found.Structured, o.found.OutputErr = in.last.structured, in.last.err
	o.onCleaned(in.cleaned)
	o.warn(in.last.warning)
}

func (in breach) take(o *owner, now time.Time) { o.stop(in.cause, in.reason, now) }

func (in streamEnded) take(o *owner, now time.Time) {
	o.streamOver, o.found.StreamErr = true, in.err
	if in.response != nil {
		o.responded = in.response
		o.found.Final = &pluginv1.Result{}
	}
	if cutOff(in.err) && o.found.Cause == outcome.CauseNone {
		o.to(ended, now)
		return
	}
	o.settle(now)
	o.tryDrained(now)
}

// take records the end of the tool's own process. A SIGKILL of the clean-up is
// neither the tool's doing nor the ladder's.
func (in exited) take(o *owner, now time.Time) {
	ladder := o.found.Cause != outcome.CauseNone && slices.Contains(o.ladder.signals, "SIGKILL")
	ours := o.tree != nil && o.tree.Killed() && !ladder && in.status.Signaled() && in.status.Signal() == syscall.SIGKILL
	if ours && o.state >= stateKilling {
		return
	}
	o.found.Exited, o.found.Exit, o.found.ExitOurs = true, in.status, ours
	o.settle(now)
}

func (outputEnded) take(o *owner, now time.Time) {
	o.outputOver = true
	o.tryDrained(now)
}

func (groupEmptied) take(o *owner, now time.Time) { o.to(emptied, now) }

// What the starter reports.

// Launching says that from now on there may be a process, or one that was there before
// may do something for the call.
func (c *Call) Launching() { c.launching.Store(true) }

// Spawned says that there are processes.
func (c *Call) Spawned(t Tree) {
	c.spawned = t
	c.send(spawned{t})
}

// Connected says that the tool answers.
func (c *Call) Connected(conn Peer) { c.send(connection{conn}) }

// StartFailed says that it never will.
func (c *Call) StartFailed(err error) { c.send(failure{err}) }

// What the processes report.

// Output takes what they write.
func (c *Call) Output(from process.Source, p []byte) error { return c.output.take(from, p) }

// OutputEnded comes after the last of it.
func (c *Call) OutputEnded(from process.Source) {
	if from == process.AllOutput {
		c.send(outputEnded{})
		return
	}
	c.output.ended(from)
}

// InputFailed is why the command's input is cut off.
func (c *Call) InputFailed(err error) { c.output.unread.Store(&err) }

// Late says that what the tool sends is not held up.
func (c *Call) Late() bool { return c.ending.Load() }

// Exited is the end of the tool's own process.
func (c *Call) Exited(status syscall.WaitStatus) { c.send(exited{status}) }

// OutOfMemory says that the memory limit has ended processes.
func (c *Call) OutOfMemory() { c.send(breach{outcome.CauseOOM, api.ReasonMemory}) }

// Collateral says that another call ends the processes.
func (c *Call) Collateral() { c.send(breach{outcome.CauseCollateral, api.ReasonCollateral}) }
