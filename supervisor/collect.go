package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/capture"
)

// finish makes the result of a call whose processes are gone, or given up.
// Freeing what the call held in this process comes after the answer.
func (c *Call) finish() {
	c.marks.done = time.Now()
	e := c.evidence()
	r := c.baseResult()
	c.fillOutcome(r, e)
	c.publishResult(r)
	c.result = r
	close(c.done)
	c.teardown()
}

// evidence is what classify decides by.
func (c *Call) evidence() evidence {
	e := evidence{
		cause: c.cause, reason: c.reason, final: c.final, startErr: c.startErr, streamErr: c.streamErr,
		exited: c.exited, exit: c.exit, survivors: c.kill.survivors, ran: c.ran(),
	}
	if c.tree != nil {
		usage, err := c.tree.group.Usage()
		if err != nil {
			c.warnings = append(c.warnings, "usage is incomplete: "+err.Error())
		}
		e.usage = usage
	}
	return e
}

// ran: the tool's program has begun, or may have.
func (c *Call) ran() bool {
	return c.tree != nil && c.tree.executed.Load() || errors.Is(c.startErr, sandbox.ErrUncertain)
}

// teardown gives back what the call held. A tree that could not be killed
// keeps its slot and its group until it is gone after all.
func (c *Call) teardown() {
	if c.cancelWork != nil {
		c.cancelWork()
	}
	if c.filesTo != nil {
		_ = c.filesTo.Close()
	}
	if c.output != nil {
		c.output.close()
	}
	if c.acks != nil {
		c.acks.close()
	}
	if c.conn != nil {
		c.closeConnection()
	}
	c.freeTree()
}

// closeConnection waits for go-plugin's own clean-up, unless processes live.
func (c *Call) closeConnection() {
	if c.kill.survivors > 0 {
		go c.conn.Close()
		return
	}
	c.conn.Close()
}

func (c *Call) freeTree() {
	release := c.release
	if release == nil {
		release = func() {}
	}
	t := c.tree
	if t == nil {
		c.freeUnseen(release)
		return
	}
	t.end()
	if c.kill.survivors > 0 {
		go c.freeLater(t, release)
		return
	}
	t.process.Release()
	t.helpers.Wait()
	c.removeGroup(t)
	release()
}

// freeUnseen gives the slot back of a call whose processes the owner has not
// seen: there are none, or the starter still brings some.
func (c *Call) freeUnseen(release func()) {
	if c.started == nil || c.kill.survivors == 0 && c.spawned == nil && closed(c.started) {
		release()
		return
	}
	go func() {
		<-c.started
		if t := c.spawned; t != nil {
			t.kill()
			t.end()
			c.freeLater(t, release)
			return
		}
		release()
	}()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// freeLater gives the slot back when the kernel lets go of the tree at last.
func (c *Call) freeLater(t *tree, release func()) {
	t.process.Abandon()
	<-t.process.Gone()
	if t.group.WaitEmpty(context.Background()) == nil {
		c.removeGroup(t)
		release()
	}
}

func (c *Call) removeGroup(t *tree) {
	if err := t.group.Remove(); err != nil {
		c.s.config.Logger.Warn("cannot remove the group of a call", "call", c.id, "error", err)
	}
}

// baseResult holds what is known of any call.
func (c *Call) baseResult() *Result {
	r := c.emptyResult()
	r.Overran = c.overran
	c.fillOutput(r)
	c.collectFiles(r)
	c.fillTiming(r)
	c.fillKill(r)
	return r
}

func (c *Call) fillOutput(r *Result) {
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
	stdout, stderr := c.output.stdout.Kept(), c.output.stderr.Kept()
	r.Output.Stdout, r.Output.Stderr = streamOutput(stdout), streamOutput(stderr)
	for path, problem := range map[string]string{stdout.SpillPath: stdout.SpillError, stderr.SpillPath: stderr.SpillError} {
		if problem != "" {
			r.Warnings = append(r.Warnings, "spill file "+path+" is not whole: "+problem)
		}
	}
}

func streamOutput(k capture.Kept) StreamOutput {
	return StreamOutput{k.Head, k.Tail, k.SeenBytes, k.KeptBytes, k.DroppedBytes, k.SpillPath}
}

func (c *Call) fillTiming(r *Result) {
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
	t.ElapsedMs = between(m.admitted, m.done)
	if !m.admitted.IsZero() {
		t.HumanWaitMs = c.clock.HumanWait(m.done).Milliseconds()
	}
}

func (c *Call) fillKill(r *Result) {
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
	from := c.marks.stop
	if c.cause == causeDeadline {
		if at, ok := c.clock.Deadline(); ok {
			from = at
		}
	}
	return max(c.marks.term.Sub(from), 0)
}

// emptyResult is the part of a result that exists before the call does.
func (c *Call) emptyResult() *Result {
	r := &Result{
		SchemaVersion: SchemaVersion, CallID: c.id, Tool: c.events.tool, SHA256: c.sha256(), Instance: "fresh",
		Warnings: append([]string{}, c.warnings...), Files: []File{}, Content: []Content{},
		Limits: c.appliedLimits(), Sandbox: c.receipt(), Kill: Kill{Stage: "none", Signals: []string{}},
	}
	resolution := c.resolution
	r.Timing = Timing{
		Profile: resolution.Profile, Source: string(resolution.Source), SourceDetail: resolution.SourceDetail,
		Clamped: resolution.Clamped, SoftBudgetMs: resolution.SoftBudget.Milliseconds(), GraceLimitMs: c.grace.Milliseconds(),
		TimeoutMs: finiteMs(resolution.Timeout),
	}
	if resolution.Requested != nil {
		r.Timing.RequestedTimeoutMs = finiteMs(*resolution.Requested)
	}
	return r
}

func finiteMs(d time.Duration) *int64 {
	if d == budget.Infinite {
		return nil
	}
	return new(d.Milliseconds())
}

func usageOf(u cgroup.Usage) Usage {
	return Usage{
		CPUUserMs: u.CPUUser.Milliseconds(), CPUSystemMs: u.CPUSystem.Milliseconds(),
		MemoryPeakBytes: u.MemoryPeakBytes, PidsPeak: u.PidsPeak,
		IOReadBytes: u.IOReadBytes, IOWriteBytes: u.IOWriteBytes,
		OOMEvents: u.OOMEvents, OOMKills: u.OOMKills, PidsLimitHits: u.PidsLimitHits,
		AncestorOOMKills: u.AncestorOOMKills, AncestorPidsLimitHits: u.AncestorPidsLimitHits,
	}
}

func (c *Call) publishResult(r *Result) {
	kind := EventFailed
	if r.OK() {
		kind = EventFinished
	}
	c.events.publish(Event{Kind: kind, Status: r.Status, ElapsedMs: r.Timing.ElapsedMs, Display: r.Display()})
}
