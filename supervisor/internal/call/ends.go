package call

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// settle ends the call once both the stream and the process are over, or the
// stream with a result; if only one is, the other gets meetTime.
func (o *owner) settle(now time.Time) {
	complete := o.found.Final != nil && o.streamOver
	switch {
	case o.state == stateStarting && o.found.StartErr != nil && o.found.Exited:
		o.failStart(o.found.StartErr, now)
	case o.state == stateStarting && o.found.Exited && o.marks.older(o.tree):
		o.failStart(errEndedBefore, now)
	case complete && o.giveBack(now):
	case complete:
		o.to(ended, now)
	case o.streamOver && o.found.Exited:
		if o.tree.LauncherLost() { // by its own timer, if the host was late
			o.hearsUntil = now
			o.checkBudget(now)
		}
		o.to(ended, now)
	case o.settleAt.IsZero() && (o.streamOver || o.found.Exited || o.found.Final != nil):
		o.settleAt = now.Add(meetTime)
	}
}

// failStart ends a call whose tool does not come up.
func (o *owner) failStart(err error, now time.Time) {
	o.found.StartErr = cmp.Or(o.found.StartErr, err) // the later one is what came of the first
	if o.state == stateStarting && o.settleAt.IsZero() && !o.found.Exited && host.Ended(err) {
		o.settleAt = now.Add(settleTime) // how it has ended comes on another way
		return
	}
	o.streamOver = true
	o.outputOver = o.outputOver || o.tree == nil // nobody reads what nobody writes
	o.to(startFailed, now)
}

// errWrapper is why a tool never answers though something of it lives on.
var errWrapper = errors.New("the tool's own process ended before its handshake, and another one holds its output: start the tool itself, with exec in a shell script")

// errEndedBefore is why a process that was there before the call is of no use to it.
var errEndedBefore = errors.New("the tool's process ended before it was given the call")

// endAlone ends a call of whose two halves only one has come in time.
func (o *owner) endAlone(now time.Time) {
	if o.state == stateStarting {
		o.failStart(errWrapper, now)
		return
	}
	o.to(ended, now)
}

// giveBack leaves a kept process alive after a call that has ended well. What
// the call has written so far is still its own.
func (o *owner) giveBack(now time.Time) bool {
	if o.p.Request.Keep == nil || o.state != stateRunning || o.found.StreamErr != nil || o.found.Exited {
		return false
	}
	if o.p.Request.Tool.Adapter && serverDied(o.found.Final) {
		o.tree.Wear()
	}
	if !o.tree.MayLiveOn() {
		return false
	}
	if o.responded.GetError() != nil && !o.p.Request.Keep.Asked { // what it describes could not be started
		return false
	}
	o.after = new(o.usage())
	o.to(released, now)
	taken := slices.DeleteFunc(o.tree.OutputTaken(), closed)
	if len(taken) == 0 { // mostly there is no wait
		outputEnded{}.take(o, now)
		return true
	}
	o.helpers.Go(func() {
		for _, found := range taken {
			select {
			case <-found:
			case <-o.lifetime.Done():
			}
		}
		o.send(outputEnded{})
	})
	return true
}

// serverDied: what the server behind an adapter had started is nobody's any more.
func serverDied(final *pluginv1.Result) bool {
	return final.GetError().GetKind() == pluginv1.ToolError_KIND_CRASHED
}

// tryDrained ends the call when there is nothing left to read.
func (o *owner) tryDrained(now time.Time) {
	streamOver := o.streamOver || o.tool.conn == nil
	if o.state == stateDraining && streamOver && o.outputOver {
		o.to(drained, now)
	}
}

// cutOff: the host has ended the stream, so the tool may not know that it is over.
func cutOff(err error) bool {
	var broken *host.ProtocolError
	var full *host.MemoryError
	return errors.As(err, &broken) || errors.As(err, &full)
}

func (o *owner) onAbort(reason api.Reason, now time.Time) {
	switch o.state {
	case stateQueued:
		if o.found.Cause == outcome.CauseNone {
			o.found.Cause, o.found.Reason, o.found.StartErr = outcome.CauseAbort, reason, errAborted
		}
		o.leaveQueue() // which is heard of when nothing that was made meanwhile is left
	case stateStopping:
		o.to(killRequested, now)
	case stateDraining:
		if o.output.passesThrough() { // a reader outside is not waited for; what is kept is there within settleTime
			o.to(killRequested, now)
		}
	default:
		o.stop(outcome.CauseAbort, reason, now)
	}
}

var errAborted = errors.New("aborted before it began")

// warn adds a warning to the result, unless it is empty.
func (o *owner) warn(text string) {
	if text != "" {
		o.warnings = append(o.warnings, text)
	}
}

// warnOf has the result say what has failed, if something has.
func (o *owner) warnOf(what string, err error) {
	if err != nil {
		o.warn(what + ": " + err.Error())
	}
}

// retire ends the owner's part: senders of input no longer wait for it.
func (o *owner) retire() {
	o.alarm.stop()
	close(o.over)
	if len(o.aborts) > 0 {
		o.stopMaking(errAbortedLate)
	}
}
