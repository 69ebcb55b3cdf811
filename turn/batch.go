package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// stage is where a call of a batch is.
type stage int

const (
	stageAsking  stage = iota // a human is asked first
	stageReady                // waits for its place: an exclusive call runs alone
	stageRunning              // with the supervisor
	stageDone                 // has its result
)

var stageNames = [...]string{"asking", "queued", "running", "done"}

// entry is one call of a batch, the owner's.
type entry struct {
	call    Call
	key     string // of its events: its id, made unique in the turn
	tool    Tool
	stage   stage
	running Running
	since   time.Time
	waited  time.Duration // for a human
	notes   []string      // for the model
	result  *supervisor.Result
}

// batch is what a model asked for at once.
type batch struct {
	t       *Turn
	entries []*entry
	left    int
	checked bool          // every entry; none starts before
	done    chan struct{} // closed when every entry has its result
}

func (b *batch) begin(calls []Call) {
	b.left = len(calls)
	for _, call := range calls {
		e := &entry{call: call, key: call.ID, stage: stageReady}
		if n := b.t.seen[call.ID]; n > 0 {
			e.key = fmt.Sprintf("%s#%d", call.ID, n+1)
		}
		b.t.seen[call.ID]++
		if len(call.Tool) > maxNameBytes {
			e.call.Tool = strings.ToValidUTF8(call.Tool[:maxNameBytes], "")
			e.call.Problem = "there is no tool of such a long name"
		}
		b.entries = append(b.entries, e)
		b.t.emit(b.event(e, string(supervisor.EventQueued)), nil)
	}
	b.t.flush() // so that a journal which fails is known before anything runs
	for _, e := range b.entries {
		b.check(e)
	}
	b.checked = true
	b.advance()
	b.endIfOver()
}

func (b *batch) event(e *entry, kind string) Event {
	return Event{Kind: kind, CallID: e.key, Tool: e.call.Tool}
}

// check decides what can be decided before a call has its place.
func (b *batch) check(e *entry) {
	t := b.t
	switch {
	case t.reason != "":
		b.finish(e, cancelled(e.call, t.reason))
		return
	case t.journalErr != nil:
		b.finish(e, unjournalled(e.call, t.journalErr))
		return
	}
	if refused := t.budget.Count(); refused != "" {
		b.deny(e, "turn_budget", deciderBudget, string(refused))
		return
	}
	switch {
	case e.call.Problem != "":
		b.finish(e, invalid(e.call, e.call.Problem))
		return
	}
	if b.isStatus(e) {
		return
	}
	tool, ok := t.m.config.Tool(e.call.Tool)
	if !ok {
		b.finish(e, invalid(e.call, fmt.Sprintf("there is no tool %q", e.call.Tool)))
		return
	}
	e.tool = tool
	if refused := b.checkRepeat(e); refused {
		return
	}
	switch tool.mode() {
	case ModeDeny:
		b.deny(e, "policy", deciderMode, "the operator does not allow this tool")
	case ModeAsk:
		if !t.always[e.call.Tool] {
			b.approve(e)
		}
	}
}

// approve asks a human; the call waits for its place meanwhile.
func (b *batch) approve(e *entry) {
	kind := KindApproval
	if e.tool.Destructive {
		kind = KindConfirm
	}
	wait, _, _ := WaitFor(kind, 0)
	e.stage = stageAsking
	began := b.t.now()
	b.t.request(Interaction{
		CallID: e.key, Tool: e.call.Tool, Kind: kind, Prompt: "Run the tool " + e.call.Tool + "?",
		Arguments: e.call.Arguments, Policy: e.tool.Request.Sandbox,
	}, wait, func(outcome string, a Answer) {
		e.waited += b.t.now().Sub(began)
		b.decided(e, outcome, a)
	})
}

func (b *batch) decided(e *entry, outcome string, a Answer) {
	if e.stage != stageAsking {
		return
	}
	e.stage = stageReady
	switch {
	case outcome == OutcomeAnswered && a.Approve:
		if a.Always {
			b.t.always[e.call.Tool] = true
			for _, p := range b.t.pendings { // of the same tool, asked for at once
				if p.Tool == e.call.Tool && p.Kind == KindApproval {
					b.t.close(p, OutcomeAnswered, a)
				}
			}
		}
	case outcome == OutcomeTimedOut:
		b.deny(e, "timeout", deciderMode, "nobody approved it in time")
	case outcome == OutcomeHeadless:
		b.deny(e, "headless", deciderMode, "it needs an approval, and nobody is there to give one")
	case outcome == OutcomeCancelled:
		b.finish(e, cancelled(e.call, b.t.reason))
	default:
		b.deny(e, "user", deciderMode, "a human has denied it")
	}
	b.advance()
	b.endIfOver()
}

// deny gives a call its refusal, and the audit its record.
func (b *batch) deny(e *entry, reason, decider, why string) {
	audit := b.event(e, AuditDenied)
	audit.Reason, audit.Decider = reason, decider
	b.t.emit(audit, nil)
	b.finish(e, denied(e.call, reason, decider, why))
}

// advance starts, in call order, whatever has its place: a call runs once no
// exclusive one before it waits or runs; an exclusive one once it is alone.
func (b *batch) advance() {
	if !b.checked || b.t.reason != "" {
		return // an abort sees to all that has not begun
	}
	running := 0
	for _, e := range b.entries {
		if e.stage == stageRunning {
			running++
			if e.tool.Exclusive {
				return
			}
		}
	}
	for _, e := range b.entries {
		switch {
		case e.stage == stageDone:
			continue
		case running >= b.t.m.config.Parallel:
			return
		case e.stage == stageReady && (!e.tool.Exclusive || running == 0):
			b.start(e)
			if e.stage == stageRunning {
				running++
			}
		}
		if e.tool.Exclusive && e.stage != stageDone {
			return
		}
	}
}

func (b *batch) ended(e *entry, result *supervisor.Result) {
	b.closePendings(e)
	b.t.budget.Release(b.t.now())
	if result.Status == supervisor.StatusTimeout && !slices.Contains(b.t.info.TimedOutTools, e.call.Tool) {
		b.t.info.TimedOutTools = append(b.t.info.TimedOutTools, e.call.Tool)
	}
	own := *result
	b.finish(e, &own)
	b.advance()
	b.endIfOver()
}

// finish gives a call its one result.
func (b *batch) finish(e *entry, r *supervisor.Result) {
	e.stage, e.result = stageDone, r
	b.left--
	r.CallID, r.TurnID, r.Tool = e.call.ID, b.t.info.TurnID, e.call.Tool
	r.Warnings = append(slices.Clone(r.Warnings), e.notes...)
	r.Timing.HumanWaitMs += e.waited.Milliseconds()
	if left, ok := b.t.budget.Remaining(b.t.now()); ok {
		r.RemainingMs = new(left.Milliseconds())
	}
	kind := supervisor.EventFailed
	if r.OK() {
		kind = supervisor.EventFinished
	}
	event := b.event(e, string(kind))
	event.Status, event.ElapsedMs, event.Reason, event.Decider = r.Status, r.Timing.ElapsedMs, r.Reason, r.Decider
	event.Display = r.Display()
	b.t.emit(event, r)
}

func (b *batch) isStatus(e *entry) bool {
	return e.call.Tool == StatusTool && !b.t.m.config.NoStatus
}

// closePendings ends what a call still asks for.
func (b *batch) closePendings(e *entry) {
	for _, p := range b.t.pendings {
		if p.CallID == e.key {
			b.t.close(p, OutcomeCancelled, Answer{By: "call"})
		}
	}
}

func (b *batch) endIfOver() {
	if b.checked && b.left == 0 && b.t.batch == b {
		b.t.batch = nil
		b.t.flushed = append(b.t.flushed, b.done)
	}
}

func (b *batch) abort(reason supervisor.AbortReason) {
	for _, e := range b.entries {
		b.abortEntry(e, reason)
	}
	b.endIfOver()
}

func (b *batch) abortEntry(e *entry, reason supervisor.AbortReason) {
	switch e.stage {
	case stageRunning:
		e.running.Abort(reason)
	case stageReady, stageAsking:
		b.finish(e, cancelled(e.call, reason))
	}
}

func (b *batch) abortCall(id string, reason supervisor.AbortReason) bool {
	i := slices.IndexFunc(b.entries, func(e *entry) bool { return e.call.ID == id })
	if i < 0 || b.entries[i].stage == stageDone {
		return false
	}
	e := b.entries[i]
	if e.stage == stageRunning {
		e.running.Abort(reason)
	} else {
		e.stage = stageDone // what is asked for it changes nothing any more
		b.closePendings(e)
		b.finish(e, callAborted(e.call, reason))
	}
	b.advance()
	b.endIfOver()
	return true
}

func (b *batch) results() []*supervisor.Result {
	list := make([]*supervisor.Result, len(b.entries))
	for i, e := range b.entries {
		list[i] = e.result
	}
	return list
}

func (b *batch) current() []CurrentTool {
	list := []CurrentTool{}
	if b == nil {
		return list
	}
	for _, e := range b.entries {
		if e.stage != stageDone {
			list = append(list, CurrentTool{CallID: e.call.ID, Tool: e.call.Tool, State: stageNames[e.stage], StartedAt: e.since})
		}
	}
	return list
}
