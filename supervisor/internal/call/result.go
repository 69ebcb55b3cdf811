package call

import (
	"runtime"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// finish makes the result of a call whose processes are gone, or given up.
// Freeing what the call held in this process comes after the answer.
func (o *owner) finish() {
	reached := o.reached()
	files := o.collectFiles()
	o.complete()
	o.keepLast()
	o.output.flush(o.outputOver)
	r := o.makeResult()
	files.fill(r)
	r.Network = reached
	o.marks.done = time.Now()
	o.fillTiming(r)
	o.judge(r, o.found, o.ladder.silence)
	o.answer(r)
	close(o.done)
	runtime.Gosched() // who waits for the answer may go first
}

// complete adds to what was found what is known only now.
func (o *owner) complete() {
	e := &o.found
	e.Ran, e.Usage, e.OverTotal = o.ran(), o.usage(), o.output.overLimit()
	e.Unseen = e.Ran && !o.began()
	e.LauncherLost = o.tree != nil && o.tree.LauncherLost()
	if o.p.Reader == nil { // else it is what the output was read as
		e.Structured = e.Final.GetStructured()
	}
}

// usage is what this call used: of a kept process what it used meanwhile.
func (o *owner) usage() cgroup.Usage {
	if o.after != nil {
		return *o.after
	}
	if o.tree == nil {
		return cgroup.Usage{}
	}
	usage, err := o.tree.Usage()
	o.warnOf("usage is incomplete", err)
	return usage
}

// ran: the tool's program has begun, or may have. One that is older than the call does
// nothing for it before it answers, or what it asks for is served.
func (o *owner) ran() bool {
	return o.uncertain || o.began() && (!o.marks.older(o.tree) || !o.marks.ready.IsZero() || o.launching.Load())
}

func (o *owner) began() bool { return o.tree != nil && !o.tree.Executed().IsZero() }

// older: the processes' program had begun before the call.
func (m marks) older(t Tree) bool {
	return t != nil && !t.Executed().IsZero() && t.Executed().Before(m.admitted)
}

// makeResult holds what is known of any call.
func (o *owner) makeResult() *api.Result {
	r := o.blank(o.warnings)
	if o.tree != nil {
		r.Sandbox = o.p.Receipt()
		r.Sandbox.UID = o.tree.UID()
		r.Instance = o.tree.Instance()
	}
	r.Overran = o.overran
	o.content.fill(r)
	o.output.fill(r, o.outputOver, o.ran())
	o.fillKill(&r.Kill)
	return r
}

func (o *owner) fillKill(k *api.Kill) {
	k.Stage, k.Cause, k.Survivors = "none", string(o.found.Cause), o.found.Survivors
	o.ladder.fill(k, o.p.Request.Command != nil)
	m := o.marks
	if !m.term.IsZero() { // how late SIGTERM was, from the deadline itself where that is the cause
		k.TermLatencyUs = max(m.term.Sub(o.stopDue()), 0).Microseconds()
	}
	if !m.kill.IsZero() && m.empty.After(m.kill) {
		k.LatencyUs = m.empty.Sub(m.kill).Microseconds()
	}
}

// stopDue is when the call's end was to begin: not later than it did.
func (o *owner) stopDue() time.Time {
	if o.found.Cause == outcome.CauseDeadline {
		if at, ok := o.clock.Deadline(); ok && at.Before(o.marks.stop) {
			return at
		}
	}
	return o.marks.stop
}

func (o *owner) fillTiming(r *api.Result) {
	m, t := o.marks, &r.Timing
	queueEnd, startEnd := m.admitted, m.ready
	if queueEnd.IsZero() {
		queueEnd = m.done
	}
	if startEnd.IsZero() {
		startEnd = m.stop
	}
	t.QueueMs, t.StartMs, t.RunMs = between(m.created, queueEnd), between(m.admitted, startEnd), between(m.ready, m.stop)
	if o.found.Cause != outcome.CauseNone {
		t.GraceMs = between(m.stop, m.kill)
	}
	t.DrainMs, t.ElapsedMs = between(m.empty, m.done), between(m.admitted, m.done)
	if !m.admitted.IsZero() {
		t.HumanWaitMs = o.clock.HumanWait(m.done).Milliseconds()
	}
	r.Marks = api.Marks{
		Queued: m.created, Admitted: m.admitted, Ready: m.ready, Stop: o.stopDue(), Kill: m.kill, Empty: m.empty, Done: m.done,
	}
	if o.tree == nil {
		return
	}
	switch at := o.tree.Executed(); {
	case at.IsZero() || !at.Before(m.born):
		r.Marks.Spawned, r.Marks.Executed = m.born, at
	case !at.Before(m.admitted): // the owner heard of its birth later
		r.Marks.Spawned, r.Marks.Executed = at, at
	}
}

func between(from, to time.Time) int64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return max(to.Sub(from).Milliseconds(), 0)
}

// teardown gives back what the call held.
func (o *owner) teardown() {
	o.end()
	o.p.Service.Close()
	if o.cancelWork != nil {
		o.cancelWork()
	}
	o.output.close()
	o.tool.close()
	o.alarm.wait()
	o.helpers.Wait()
	switch {
	case o.release == nil: // it never had a slot
		close(o.gone)
	case o.after != nil:
		o.tree.Release()
		o.release()
	case o.tree == nil:
		o.freeUnseen()
	default:
		o.leaveTree()
	}
}

// leaveTree frees the processes, if the call is the last one there, and gives the
// slot back: that of what could not be killed only when it is gone after all.
func (o *owner) leaveTree() {
	freed := o.tree.Leave(o.found.Survivors > 0)
	if o.found.Survivors == 0 {
		o.release()
		return
	}
	o.Stuck.Add(1)
	o.Tasks.Run("hold the slot of what does not die", func() {
		<-freed
		o.Stuck.Add(-1)
		o.release()
	})
}

// freeUnseen gives the slot back of a call whose processes the owner has not
// seen: it has no processes, or the starter still brings them.
func (o *owner) freeUnseen() {
	if closed(o.started) && o.spawned == nil {
		o.release()
		return
	}
	o.Tasks.Run("hold the slot of a late start", func() {
		<-o.started
		if o.spawned != nil {
			_ = o.spawned.Kill()
			<-o.spawned.Leave(true)
		}
		o.release()
	})
}
