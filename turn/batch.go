package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/text"
)

// stage is where a call of a batch is.
type stage int

const (
	stageDescribing stage = iota // its tool is asked what it is
	stageAsking                  // a human is asked first
	stageReady                   // waits for its place: an exclusive call runs alone
	stageRunning                 // with the supervisor
	stageDone                    // has its result
)

var stageNames = [...]string{"queued", "asking", "queued", "running", "done"}

// entry is one call of a batch, the owner's.
type entry struct {
	call      Call
	key       string // of its events: its id, made unique in the turn
	asked     time.Time
	tool      Tool
	rule      string // that a human is asked for, or that denies it
	program   string // the hash of what it executes, once that was looked for
	stage     stage
	running   *starting // while stageRunning
	timeout   int64     // in force, ms, once it is known
	gate      *gate     // before its start; nil if it needed none
	queued    bool      // it waits with the supervisor, or starts
	begun     bool      // it has been told that it has started
	worker    string    // of a fleet, that was told to start it
	trace     string    // its own trace context, once it is begun
	missed    int       // events before its end that were not shown
	since     time.Time
	waited    time.Duration // for a human, before it began
	counted   bool          // it runs, by the turn's clock of tool time
	place     placement
	notes     []string         // for the model
	forgotten map[[32]byte]int // what the repeat guard had counted before it; nil if it resets nothing
	settings  []string         // those of notes that are for the operator instead
	result    *api.Result
	size      int64              // what it counts for while it is held
	shelved   bool               // it is on record alone
	ended     int64              // the seq of the event that has it
	spent     budget.Refusal     // of the turn's budget, when it had its slot
	giveUp    context.CancelFunc // ends its Describe; nil before that

	questions int           // of the tool's own that wait for an answer
	heldSince time.Time     // of the first of them
	held      time.Duration // by those that are over
	unasked   bool          // one of them found nobody
	cut       bool          // a question had less time than its own
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
		e := &entry{call: call, key: b.t.uniqueKey(call.ID), asked: b.t.now(), stage: stageReady}
		if len(call.Tool) > maxNameBytes {
			e.call.Tool = text.Bytes(call.Tool, maxNameBytes)
			e.call.Problem = "no tool has such a long name"
		}
		b.entries = append(b.entries, e)
		b.t.emit(b.event(e, api.EventQueued), nil)
	}
	b.t.patience.begin = b.leavesNothing()
	if b.t.recorded.err != nil || b.t.m.outage.lasts() {
		b.t.flush() // it may work again
	}
	for _, e := range b.entries {
		if b.check(e); e.stage == stageReady && !b.isStatus(e) {
			b.disturb(e)
		}
	}
	b.checked = true
	b.advance()
	b.endIfOver()
}

// leavesNothing says that the turn is one call which changes nothing, by the operator's
// word: it may run before it is on record, so that it is put there once. While the
// journal fails it is not.
func (b *batch) leavesNothing() bool {
	if !b.t.single || len(b.entries) != 1 || b.t.recorded.err != nil || b.t.m.outage.lasts() {
		return false
	}
	tool, ok := b.t.tool(b.entries[0].call.Tool)
	return ok && tool.Request.Tool.ReadOnly && !tool.ChildTurns
}

// uniqueKey makes an id that an earlier batch has used one of its own.
func (t *Turn) uniqueKey(id string) string {
	key := id
	for n := 2; t.seen[key]; n++ {
		key = fmt.Sprintf("%s#%d", id, n)
	}
	t.seen[key] = true
	return key
}

func (b *batch) event(e *entry, kind api.EventKind) api.Event {
	return api.Event{Kind: kind, CallID: e.key, Tool: e.call.Tool}
}

// advance starts, in call order, whatever has its place: a call runs once no
// exclusive one before it waits or runs; an exclusive one once it is alone, and
// the tools of all before it are described.
func (b *batch) advance() {
	if !b.checked || b.t.reason != "" {
		return // an abort sees to all that has not begun
	}
	running := 0
	for _, e := range b.entries {
		if e.runs() {
			running++
			if e.tool.Exclusive {
				return
			}
		}
	}
	describing := false
	for _, e := range b.entries {
		switch {
		case e.stage == stageDone, e.place.rests && e.place.again == nil:
			continue
		case running >= b.t.m.config.Parallel:
			return
		case e.inLine() && (!e.tool.Exclusive || running == 0 && !describing):
			if b.place(e) {
				b.begins(e)
			}
			if e.runs() {
				running++
			}
		}
		if e.tool.Exclusive && e.stage != stageDone {
			return
		}
		describing = describing || e.stage == stageDescribing
	}
}

// begins has a call run that has its place.
func (b *batch) begins(e *entry) {
	if e.place.again != nil {
		b.goesOn(e, nil)
		return
	}
	b.start(e)
}

func (b *batch) ended(e *entry, result *api.Result) {
	b.closePendings(e)
	b.count(e, false)
	b.noteTimeout(e, result)
	own := *result
	if e.gate.refused() {
		own = *unjournalled(e.call, e.gate.err)
	}
	if e.running.early && !own.OK() && own.Retry.SideEffects == "none" {
		own = *b.notBegun(e, e.running.reason) // its preparation was cut short
	}
	if e.spent != "" {
		e.since = time.Time{} // it has only waited
		b.deny(e, api.ReasonTurnBudget, deciderBudget, string(e.spent))
	} else {
		e.noteUnasked(&own)
		b.finish(e, &own)
	}
	b.reaped(e, own.Kill)
	b.advance()
	b.endIfOver()
}

func (b *batch) noteTimeout(e *entry, r *api.Result) {
	if r.Status != api.StatusTimeout {
		return
	}
	if spent := b.t.budget.Refuses(b.t.now()); spent != "" { // smaller steps are of no use then
		e.notes = append(e.notes, string(spent))
	}
	b.t.budget.session.noteTimeout(e.call.Tool)
	if !slices.Contains(b.t.info.TimedOutTools, e.call.Tool) {
		b.t.info.TimedOutTools = append(b.t.info.TimedOutTools, e.call.Tool)
	}
}

// finish gives a call its one result.
func (b *batch) finish(e *entry, r *api.Result) {
	e.stage, e.result = stageDone, r
	e.place.stop()
	if e.giveUp != nil {
		e.giveUp()
	}
	b.left--
	b.settle(e, r)
	r.CallID, r.TurnID, r.Tool = e.call.ID, b.t.info.TurnID, e.call.Tool
	r.Warnings = append(slices.Clone(r.Warnings), e.notes...)
	r.Timing.SettingsWarnings = append(slices.Clone(r.Timing.SettingsWarnings), e.settings...)
	r.Timing.HumanWaitMs += e.waited.Milliseconds()
	r.Timing.QueueMs += b.queued(e).Milliseconds()
	if left, ok := b.t.budget.Remaining(b.t.now()); ok {
		r.RemainingMs = new(left.Milliseconds())
	}
	kind := api.EventFailed
	if r.OK() {
		kind = api.EventFinished
	}
	event := b.event(e, kind)
	event.Status, event.ElapsedMs, event.Reason, event.Decider = r.Status, r.Timing.ElapsedMs, r.Reason, r.Decider
	event.Display, event.Missed = r.Display(), e.missed
	b.t.emit(event, r)
	last := &b.t.outbox[len(b.t.outbox)-1]
	e.ended = last.Event.Seq
	b.t.recorded.fresh = append(b.t.recorded.fresh, e)
	last.Asked = e.asked
	last.TraceParent, last.Trace = e.traceParent(), e.trace
}

// traceParent is the trace context that the call came with.
func (e *entry) traceParent() string {
	if len(e.call.TraceParent) > maxTraceBytes {
		return ""
	}
	return e.call.TraceParent
}

// beginTrace makes the call's own trace context.
func (b *batch) beginTrace(e *entry) {
	e.trace = e.traceParent()
	if begin := b.t.m.config.Trace; begin != nil {
		e.trace = begin(e.trace)
	}
}

// queued is how long a call has waited for its place in the turn.
func (b *batch) queued(e *entry) time.Duration {
	if e.asked.IsZero() {
		return 0
	}
	until := e.since
	if until.IsZero() {
		until = b.t.now()
	}
	return max(until.Sub(e.asked)-e.waited, 0) + e.place.lined
}

// maxTraceBytes bounds a trace context, which has 55.
const maxTraceBytes = 128

func (b *batch) isStatus(e *entry) bool {
	return e.call.Tool == StatusTool && !b.t.m.config.NoStatus
}

// closePendings ends what a call still asks for, but for what stays open for the turn.
func (b *batch) closePendings(e *entry) {
	for _, p := range b.t.pendings {
		if p.CallID == e.key {
			b.t.endWithCall(p)
		}
	}
}

func (b *batch) endIfOver() {
	if b.checked && b.left == 0 && b.t.batch == b {
		b.t.batch = nil
		b.t.busy(false)
		b.t.flushed = append(b.t.flushed, b)
		if b.t.single && !b.shelved() { // what has ended may be removed from the record
			b.t.finish()
		}
	}
}

func (b *batch) abort(reason api.Reason) {
	for _, e := range b.entries {
		b.abortEntry(e, reason)
	}
	b.endIfOver()
}

func (b *batch) abortEntry(e *entry, reason api.Reason) {
	switch e.stage {
	case stageRunning:
		e.running.abort(reason)
	case stageReady, stageAsking, stageDescribing:
		b.finish(e, cancelled(e.call, reason, turnAborted))
	}
}

func (b *batch) abortCall(id string, reason api.Reason) bool {
	i := slices.IndexFunc(b.entries, func(e *entry) bool { return e.key == id || e.call.ID == id })
	if i < 0 || b.entries[i].stage == stageDone {
		return false
	}
	e := b.entries[i]
	if e.stage == stageRunning {
		e.running.abort(reason)
	} else {
		e.stage = stageDone // what is asked for it changes nothing any more
		b.closePendings(e)
		b.finish(e, b.notBegun(e, reason))
	}
	b.advance()
	b.endIfOver()
	return true
}

// notBegun is the result of a call that an abort of its own, or of the turn, came
// before.
func (b *batch) notBegun(e *entry, reason api.Reason) *api.Result {
	if b.t.reason != "" {
		return cancelled(e.call, b.t.reason, turnAborted)
	}
	return cancelled(e.call, reason, callAborted)
}

// toolOf is the tool of a call that has no result yet, by the key of its events;
// ok is false without such a call.
func (b *batch) toolOf(key string) (tool string, ok bool) {
	if b == nil {
		return "", false
	}
	i := slices.IndexFunc(b.entries, func(e *entry) bool { return e.key == key && e.stage != stageDone })
	if i < 0 {
		return "", false
	}
	return b.entries[i].call.Tool, true
}

// humanWait is how long a call that has begun has waited for humans.
func (e *entry) humanWait(now time.Time) time.Duration {
	if e.questions == 0 {
		return e.held
	}
	return e.held + now.Sub(e.heldSince)
}

// current are the calls that run or wait, and what has been begun of each.
func (b *batch) current() ([]api.CurrentTool, []Running) {
	list, running := []api.CurrentTool{}, []Running(nil)
	if b == nil {
		return list, nil
	}
	for _, e := range b.entries {
		if e.stage != stageDone {
			c := api.CurrentTool{
				CallID: e.key, Tool: e.call.Tool, State: stageNames[e.stage], StartedAt: e.since,
				TimeoutMs: e.timeout, HumanWaitMs: e.humanWait(b.t.now()).Milliseconds(), Worker: e.worker,
			}
			if e.queued || e.place.again != nil {
				c.State, c.StartedAt = stageNames[stageReady], time.Time{}
			}
			list, running = append(list, c), append(running, e.running.begun())
		}
	}
	return list, running
}
