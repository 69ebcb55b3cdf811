package supervisor

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// finish makes the result of a call whose processes are gone, or given up.
// Freeing what the call held in this process comes after the answer.
func (c *Call) finish() {
	files := c.collectFiles()
	e := c.evidence()
	c.keepLast(e.Complete())
	c.contentVeil.End(c.keepText)
	if c.output != nil {
		c.output.flush(c.outputOver)
	}
	r := c.baseResult()
	files.fill(r)
	c.marks.done = time.Now()
	c.fillTiming(r)
	c.fillOutcome(r, e)
	c.publishResult(r)
	c.result = r
	close(c.done)
	c.teardown()
}

// evidence is what the call is judged by.
func (c *Call) evidence() outcome.Evidence {
	return outcome.Evidence{
		Cause: c.cause, Reason: c.reason, Final: c.final, StartErr: c.startErr, StreamErr: c.streamErr,
		Exited: c.exited, Exit: c.exit, ExitOurs: c.exitOurs, Survivors: c.kill.survivors, Ran: c.ran(), Usage: c.usage(),
		ExitOK: c.exitOK, ExitJudged: c.exitJudged, ExitMessage: c.exitMessage, OutputErr: c.outputErr, Structured: c.structuredResult(),
		LauncherLost: c.tree != nil && c.tree.LauncherLost(),
		OverTotal:    c.output != nil && c.output.overLimit(),
	}
}

// structuredResult is what a command's output was read as, or else the tool's own.
func (c *Call) structuredResult() json.RawMessage {
	if c.p.Reader != nil {
		return c.structured
	}
	return c.final.GetStructured()
}

// fillOutcome makes the judgement and everything that follows from it.
func (c *Call) fillOutcome(r *api.Result, e outcome.Evidence) {
	t := c.p.Terms(c.silence)
	e.Judge(r, t)
	c.hintAtGrants(r)
	c.p.Veil.Result(r)
	e.Word(r, t)
}

// usage is what this call used: of a kept process what it used meanwhile.
func (c *Call) usage() cgroup.Usage {
	if c.after != nil {
		return *c.after
	}
	if c.tree == nil {
		return cgroup.Usage{}
	}
	usage, err := c.tree.Usage()
	if err != nil {
		c.warnings = append(c.warnings, "usage is incomplete: "+err.Error())
	}
	return usage
}

// wasKilled: the host has killed the processes.
func (c *Call) wasKilled() bool { return c.tree != nil && c.tree.Killed() }

// ran: the tool's program has begun, or may have.
func (c *Call) ran() bool { return c.uncertain || c.tree != nil && c.tree.Executed() }

// teardown gives back what the call held.
func (c *Call) teardown() {
	c.end()
	c.p.Service.Close()
	if c.cancelWork != nil {
		c.cancelWork()
	}
	if c.output != nil {
		c.output.close()
	}
	if c.acks != nil {
		c.acks.close()
	}
	c.alarm.wait()
	c.helpers.Wait()
	if c.release == nil { // it never had a slot
		close(c.gone)
		return
	}
	switch {
	case c.after != nil:
		c.tree.Release()
		c.release()
	case c.tree == nil:
		c.freeUnseen()
	default:
		c.leaveTree()
	}
}

// leaveTree frees the processes, if the call is the last one there, and gives the
// slot back: that of what could not be killed only when it is gone after all.
func (c *Call) leaveTree() {
	freed := c.tree.Leave(c.kill.survivors > 0)
	if c.kill.survivors == 0 {
		c.release()
		return
	}
	c.s.stuck.Add(1)
	c.s.tasks.Run("hold the slot of what does not die", func() {
		<-freed
		c.s.stuck.Add(-1)
		c.release()
	})
}

// freeUnseen gives the slot back of a call whose processes the owner has not
// seen: there are none, or the starter still brings some.
func (c *Call) freeUnseen() {
	if c.kill.survivors == 0 && closed(c.started) && c.spawned == nil {
		c.release()
		return
	}
	stuck := int64(min(c.kill.survivors, 1))
	c.s.stuck.Add(stuck)
	c.s.tasks.Run("hold the slot of a late start", func() {
		<-c.started
		if c.spawned != nil {
			_ = c.spawned.Kill()
			<-c.spawned.Leave(true)
		}
		c.s.stuck.Add(-stuck)
		c.release()
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// baseResult holds what is known of any call.
func (c *Call) baseResult() *api.Result {
	r := c.p.Blank()
	r.Warnings, r.Instance, r.Sandbox = append([]string{}, c.warnings...), c.instanceKind(), c.receipt()
	r.Overran = c.overran
	c.fillOutput(r)
	c.fillKill(r)
	return r
}

func (c *Call) fillOutput(r *api.Result) {
	kept := c.output.kept()
	r.Content = shownContent(c.content.Kept())
	r.Output.Content.SeenBytes, r.Output.Content.KeptBytes, r.Output.Content.DroppedBytes = c.content.Counts()
	if c.output == nil {
		return
	}
	if c.ran() && c.output.passesThrough() && !c.outputOver {
		r.Output.Undelivered = true
		r.Warnings = append(r.Warnings, "the output is not whole: its reader had not taken all of it when the call's time was over")
	}
	if lost := c.output.lost.Load(); lost != nil {
		r.Output.Undelivered = true
		r.Warnings = append(r.Warnings, "the output could not be passed on: "+(*lost).Error())
	}
	stdout, stderr := kept()
	r.Output.Stdout, r.Output.Stderr = streamOutput(stdout), streamOutput(stderr)
	if c.p.Reader != nil {
		r.Output.Stdout = api.StreamOutput{SpillPath: stdout.SpillPath} // the rest is content
	}
	for path, problem := range map[string]string{stdout.SpillPath: stdout.SpillError, stderr.SpillPath: stderr.SpillError} {
		if problem != "" {
			r.Warnings = append(r.Warnings, "spill file "+path+" is not whole: "+problem)
		}
	}
}

func streamOutput(k capture.Kept) api.StreamOutput {
	return api.StreamOutput{Head: k.Head, Tail: k.Tail, SeenBytes: k.SeenBytes, KeptBytes: k.KeptBytes, DroppedBytes: k.DroppedBytes, SpillPath: k.SpillPath}
}

func (c *Call) fillTiming(r *api.Result) {
	m := c.marks
	t := &r.Timing
	between := func(from, to time.Time) int64 {
		if from.IsZero() || to.IsZero() {
			return 0
		}
		return max(to.Sub(from).Milliseconds(), 0)
	}
	queueEnd, startEnd := m.admitted, m.ready
	if queueEnd.IsZero() {
		queueEnd = m.done
	}
	if startEnd.IsZero() {
		startEnd = m.stop
	}
	t.QueueMs = between(m.created, queueEnd)
	t.StartMs = between(m.admitted, startEnd)
	t.RunMs = between(m.ready, m.stop)
	if c.cause != outcome.CauseNone {
		t.GraceMs = between(m.stop, m.kill)
	}
	t.DrainMs = between(m.empty, m.done)
	r.Marks = api.Marks{
		Queued: m.created, Admitted: m.admitted, Ready: m.ready, Stop: c.stopDue(), Kill: m.kill, Empty: m.empty, Done: m.done,
	}
	t.ElapsedMs = between(m.admitted, m.done)
	if !m.admitted.IsZero() {
		t.HumanWaitMs = c.clock.HumanWait(m.done).Milliseconds()
	}
}

func (c *Call) fillKill(r *api.Result) {
	k := &r.Kill
	k.Stage, k.Cause, k.Survivors = "none", string(c.cause), c.kill.survivors
	k.Signals = append(k.Signals, c.kill.signals...)
	k.Reaped = max(len(c.kill.seen)-k.Survivors, 0)
	for _, signal := range k.Signals {
		switch signal {
		case "SIGTERM":
			k.Stage = "term"
		case "SIGKILL":
			k.Stage = "kill"
		}
	}
	if !c.marks.term.IsZero() {
		k.TermLatencyUs = c.termLatency().Microseconds()
	}
	if !c.marks.kill.IsZero() && !c.marks.empty.IsZero() {
		k.LatencyUs = c.marks.empty.Sub(c.marks.kill).Microseconds()
	}
}

// termLatency is how late SIGTERM was, from the deadline itself where that is
// the cause.
func (c *Call) termLatency() time.Duration {
	return max(c.marks.term.Sub(c.stopDue()), 0)
}

// stopDue is when the call's end was to begin: not later than it did.
func (c *Call) stopDue() time.Time {
	if c.cause == outcome.CauseDeadline {
		if at, ok := c.clock.Deadline(); ok && at.Before(c.marks.stop) {
			return at
		}
	}
	return c.marks.stop
}

// instanceKind is fresh for a call whose process has served no other.
func (c *Call) instanceKind() string {
	if c.tree != nil && c.tree.Reused() {
		return "reused"
	}
	return "fresh"
}

func (c *Call) publishResult(r *api.Result) {
	kind := api.EventFailed
	if r.OK() {
		kind = api.EventFinished
	}
	c.events.Publish(api.Event{Kind: kind, Status: r.Status, ElapsedMs: r.Timing.ElapsedMs, Display: r.Display()})
}
