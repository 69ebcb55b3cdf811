package supervisor

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
)

// finish makes the result of a call whose processes are gone, or given up.
// Freeing what the call held in this process comes after the answer.
func (c *Call) finish() {
	files := c.collectFiles()
	e := c.evidence()
	c.keepLast(e.complete())
	c.contentVeil.end(c.keepText)
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

// evidence is what classify decides by.
func (c *Call) evidence() evidence {
	return evidence{
		cause: c.cause, reason: c.reason, final: c.final, startErr: c.startErr, streamErr: c.streamErr,
		exited: c.exited, exit: c.exit, exitOurs: c.exitOurs, survivors: c.kill.survivors, ran: c.ran(), usage: c.usage(),
		exitOK: c.exitOK, exitJudged: c.exitJudged, exitMessage: c.exitMessage, outputErr: c.outputErr,
		launcherLost: c.instance != nil && c.instance.launcherLost.Load(),
		overTotal:    c.output != nil && c.output.overLimit(),
	}
}

// usage is what this call used: of a kept process what it used meanwhile.
func (c *Call) usage() cgroup.Usage {
	if c.after != nil {
		return *c.after
	}
	if c.instance == nil {
		return cgroup.Usage{}
	}
	usage, err := c.instance.group.Usage()
	if err != nil {
		c.warnings = append(c.warnings, "usage is incomplete: "+err.Error())
	}
	if c.before != nil {
		usage = usage.Since(*c.before)
	}
	return usage
}

// ran: the tool's program has begun, or may have.
func (c *Call) ran() bool {
	return c.instance != nil && c.instance.executed.Load() || c.uncertain
}

// teardown gives back what the call held.
func (c *Call) teardown() {
	c.end()
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
	c.closeFilesTo()
	if c.release == nil { // it never had a slot
		close(c.gone)
		return
	}
	if c.after == nil {
		c.leaveInstance()
		return
	}
	if !c.instance.release(c) && c.instance.leave(c) {
		c.instance.bury()
	}
	c.release()
}

// leaveInstance frees the processes, if the call is the last one there. What
// could not be killed keeps its slot and its group until it is gone after all.
func (c *Call) leaveInstance() {
	i := c.instance
	switch {
	case i == nil:
		c.freeUnseen()
		return
	case !i.leave(c):
	case c.kill.survivors > 0:
		i.line.forget(i)
		i.tasks.run("free what does not die", i.freeLater)
	default:
		i.line.forget(i)
		i.free()
	}
	c.releaseWhenFreed(i)
}

// releaseWhenFreed gives the slot back, that of an unkillable call only when
// its processes are gone.
func (c *Call) releaseWhenFreed(i *instance) {
	if c.kill.survivors == 0 {
		c.release()
		return
	}
	c.s.stuck.Add(1)
	c.s.tasks.run("hold the slot of what does not die", func() {
		<-i.freed
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
	c.s.tasks.run("hold the slot of a late start", func() {
		<-c.started
		if i := c.spawned; i != nil {
			_ = i.kill()
			if i.leave(c) {
				i.line.forget(i)
				i.freeLater()
			}
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
	r := c.emptyResult()
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
	if c.reader != nil {
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
	if c.cause != causeNone {
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
	if c.cause == causeDeadline {
		if at, ok := c.clock.Deadline(); ok && at.Before(c.marks.stop) {
			return at
		}
	}
	return c.marks.stop
}

// emptyResult is the part of a result that exists before the call does.
func (c *Call) emptyResult() *api.Result {
	r := &api.Result{
		SchemaVersion: api.SchemaVersion, CallID: c.id, Tool: c.events.tool, SHA256: c.sha256(), Instance: c.instanceKind(),
		Warnings: append([]string{}, c.warnings...), Files: []api.File{}, Content: []api.Content{},
		Limits: c.appliedLimits(), Sandbox: c.receipt(), Kill: api.Kill{Stage: "none", Signals: []string{}},
	}
	resolution := c.resolution
	r.Timing = api.Timing{
		Profile: resolution.Profile, Source: string(resolution.Source), SourceDetail: resolution.SourceDetail,
		Clamped: resolution.Clamped, SoftBudgetMs: resolution.SoftBudget.Milliseconds(), GraceLimitMs: c.grace.Milliseconds(),
		TimeoutMs: finiteMs(resolution.Timeout), SettingsWarnings: slices.Clone(c.settings),
	}
	if resolution.Requested != nil {
		r.Timing.RequestedTimeoutMs = finiteMs(*resolution.Requested)
	}
	return r
}

// instanceKind is fresh for a call that its process was started for.
func (c *Call) instanceKind() string {
	if c.before != nil {
		return "reused"
	}
	return "fresh"
}

func finiteMs(d time.Duration) *int64 {
	if d == budget.Infinite {
		return nil
	}
	return new(d.Milliseconds())
}

func usageOf(u cgroup.Usage) api.Usage {
	return api.Usage{
		CPUUserMs: u.CPUUser.Milliseconds(), CPUSystemMs: u.CPUSystem.Milliseconds(),
		MemoryPeakBytes: u.MemoryPeakBytes, PidsPeak: u.PidsPeak,
		IOReadBytes: u.IOReadBytes, IOWriteBytes: u.IOWriteBytes,
		OOMEvents: u.OOMEvents, OOMKills: u.OOMKills, PidsLimitHits: u.PidsLimitHits,
		AncestorOOMKills: u.AncestorOOMKills, AncestorPidsLimitHits: u.AncestorPidsLimitHits,
	}
}

func (c *Call) publishResult(r *api.Result) {
	kind := api.EventFailed
	if r.OK() {
		kind = api.EventFinished
	}
	c.events.publish(api.Event{Kind: kind, Status: r.Status, ElapsedMs: r.Timing.ElapsedMs, Display: r.Display()})
}
