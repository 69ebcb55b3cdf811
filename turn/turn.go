package turn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/stack"
)

// Turn is one turn of a conversation. Its methods are safe for concurrent use.
type Turn struct {
	m       *Manager
	people  people
	view    func(Tool) (Tool, bool) // nil shows all
	most    int                     // turns of its owner at once; 0 for no bound
	lasting string                  // the session that approvals can be for
	room    func() error            // Spec.Room
	waits   map[api.InteractionKind]time.Duration
	now     func() time.Time

	inbox   chan func()
	done    chan struct{} // closed when the owner has ended
	helpers sync.WaitGroup
	heard   context.Context // ends with the model's time
	unhear  context.CancelCauseFunc
	aborted atomic.Bool
	single  bool // Spec.Single
	log     eventLog

	// All below is the owner's.
	info        api.Turn
	budget      turnBudget
	deadline    *time.Timer
	streamTimer *time.Timer // of the model's time
	batch       *batch
	pendings    map[string]*pending
	unraised    unraised
	once        map[reach][]api.Answer // of those who approved one connection, which had none to let through
	repeats     map[[32]byte]int
	seen        map[string]bool // the keys of all calls
	reason      api.Reason      // of the abort
	seq         int64
	outbox      []Record // new, not yet shown
	patience    patience
	flushed     []*batch // over with the next flush
	recorded    recorded
	over        bool
}

func newTurn(m *Manager, spec Spec) *Turn {
	t := &Turn{
		m: m, people: people{spec.Headless, spec.OpensAddresses}, single: spec.Single, view: spec.View, most: spec.Most, room: spec.Room, lasting: cmp.Or(spec.ApprovalSession, spec.SessionID), waits: maps.Clone(spec.Waits), now: time.Now, inbox: make(chan func()), done: make(chan struct{}),
		pendings: map[string]*pending{}, once: map[reach][]api.Answer{}, repeats: map[[32]byte]int{}, seen: map[string]bool{},
	}
	t.info = api.Turn{
		TurnID: spec.ID, AgentID: spec.AgentID, SessionID: spec.SessionID, Owner: spec.Owner, ParentTurnID: spec.ParentID, StartedAt: t.now().UTC(),
		TimedOutTools: []string{},
	}
	t.heard, t.unhear = context.WithCancelCause(context.Background())
	t.budget.Turn = budget.NewTurn(t.now(), spec.Budget)
	t.log.all = &m.kept
	return t
}

func (t *Turn) start() error {
	t.emit(api.Event{Kind: api.EventTurnStart, AgentID: t.info.AgentID, SessionID: t.info.SessionID, Owner: t.info.Owner, ParentID: t.info.ParentTurnID}, nil)
	if !t.single || !t.recorded.newID { // a name may be taken, which its record tells
		t.flush()
	}
	if t.recorded.err != nil {
		t.over = true
		t.log.end()
		close(t.done)
		t.m.remove(t)
		return fmt.Errorf("cannot begin turn %q: the journal cannot be written: %w", t.info.TurnID, t.recorded.err)
	}
	t.armDeadline()
	go t.own()
	return nil
}

// own is the only goroutine that touches the turn's state, until it ends.
func (t *Turn) own() {
	defer close(t.done)
	stack.Deep()
	for !t.over {
		ripe := false
		select {
		case f := <-t.inbox:
			f()
		case <-t.patience.over():
			ripe = true
		}
		t.drain()
		t.raiseNext() // now that all is closed that an answer closes
		if ripe || len(t.flushed) > 0 || t.recorded.gate != nil || !t.patience.may(t.outbox) {
			t.flush()
		}
	}
}

// drain does what else is asked for at the moment, so that what comes of it
// shares a commit.
func (t *Turn) drain() {
	for !t.over && len(t.outbox) < maxAppend {
		select {
		case f := <-t.inbox:
			f()
		default:
			return
		}
	}
}

// post hands f to the owner, or to nobody if the turn is over.
func (t *Turn) post(f func()) bool {
	select {
	case t.inbox <- f:
		return true
	case <-t.done:
		return false
	}
}

// do has the owner run f and waits for it; false if the turn is over.
func (t *Turn) do(f func()) bool {
	ran := make(chan struct{})
	if !t.post(func() { defer close(ran); f() }) {
		return false
	}
	<-ran
	return true
}

// ID returns the turn's ID: Spec.ID, or the one that was made.
func (t *Turn) ID() string { return t.info.TurnID }

// Owner returns the identity that began the turn, or its parent; it may be empty.
func (t *Turn) Owner() string { return t.info.Owner }

// tool returns a tool as the turn may use it.
func (t *Turn) tool(name string) (Tool, bool) {
	tool, ok := t.m.config.Tool(name)
	if !ok {
		return tool, false
	}
	return t.viewed(tool)
}

// hasRoom returns an error if the journal has no room for the turn's events.
func (t *Turn) hasRoom() error {
	if t.room == nil {
		return nil
	}
	return t.room()
}

// viewed returns a tool as the turn may use it.
func (t *Turn) viewed(tool Tool) (Tool, bool) {
	if t.view == nil {
		return tool, true
	}
	return t.view(tool)
}

// Shows reports whether Spec.View shows the turn a tool of this name.
func (t *Turn) Shows(tool string) bool {
	_, ok := t.viewed(Tool{Name: tool})
	return ok
}

// Done returns a channel that is closed when the turn is over and all its events are out.
func (t *Turn) Done() <-chan struct{} { return t.done }

// JournalError waits until the turn is over. It returns nil if all of the turn's events are
// in the journal, else the reason.
func (t *Turn) JournalError() error {
	<-t.done
	return t.recorded.err
}

// Abort ends the turn's calls: running ones go through the kill ladder, those not
// begun get a result that says so. A second Abort for the reason user, while the ladder
// runs, kills at once; for another reason it has no effect. Child turns are aborted
// too. The turn stays active until End, but runs nothing more. Abort does not wait for
// calls. After the turn's end it does nothing.
func (t *Turn) Abort(reason api.Reason) { t.abortAll(reason, reason == api.ReasonUser) }

// AbortOnce is like Abort, but has no effect on a turn that was aborted before. It is
// for an end that may be reported several times.
func (t *Turn) AbortOnce(reason api.Reason) { t.abortAll(reason, false) }

// abortAll aborts the turn and its children; a second time only what insists does.
func (t *Turn) abortAll(reason api.Reason, insists bool) {
	t.aborted.Store(true)
	again := false
	t.do(func() {
		if again = t.reason != ""; !again || insists {
			t.abort(reason)
		}
	})
	t.abortChildren(api.ReasonParent)
	if again && insists {
		t.abortChildren(api.ReasonUser)
	}
}

func (t *Turn) abortChildren(reason api.Reason) {
	for _, child := range t.m.turns(func(c *Turn) bool { return c.info.ParentTurnID == t.info.TurnID }) {
		child.Abort(reason)
	}
}

func (t *Turn) abort(reason api.Reason) {
	if t.reason == "" {
		t.reason = reason
		t.emit(api.Event{Kind: api.EventTurnAbort, Reason: eventReason(reason)}, nil)
	}
	for _, p := range t.pendings {
		t.close(p, api.OutcomeCancelled, api.Answer{By: string(t.reason)})
	}
	if t.batch != nil {
		t.batch.abort(reason)
	}
}

// eventReason is one of user, disconnect, timeout and error, as events have it.
func eventReason(r api.Reason) api.Reason {
	switch r {
	case api.ReasonUser, api.ReasonDisconnect, api.ReasonTimeout:
		return r
	case api.ReasonParent, api.ReasonShutdown:
		return api.ReasonUser
	}
	return api.ReasonError
}

// AbortCall aborts one call. The turn goes on. found is false if the call is unknown or
// has ended.
func (t *Turn) AbortCall(id string) (found bool) {
	t.do(func() {
		if t.batch != nil {
			found = t.batch.abortCall(id, api.ReasonUser)
		}
	})
	return found
}

// End ends the turn and aborts its child turns. If a batch still runs, End aborts it
// first. The turn's last event is turn_end. End may be called more than once.
func (t *Turn) End() {
	for {
		var wait <-chan struct{}
		ended := !t.do(func() {
			if t.batch != nil {
				wait = t.batch.done
				return
			}
			t.finish()
		})
		if ended || wait == nil {
			break
		}
		t.AbortOnce(api.ReasonUser)
		<-wait
	}
	<-t.done
	t.abortChildren(api.ReasonParent) // from now on there are no new ones
	t.helpers.Wait()
}

func (t *Turn) finish() {
	if t.deadline != nil {
		t.deadline.Stop()
	}
	t.budget.Streaming(t.now(), false)
	t.armStream()
	t.unhear(nil)
	for _, p := range t.pendings {
		t.close(p, api.OutcomeCancelled, api.Answer{By: "end"})
	}
	t.emit(api.Event{Kind: api.EventTurnEnd}, nil)
	t.recorded.failed, t.recorded.ends = time.Time{}, true // tried once more, now or never
	t.flush()
	t.m.keepLate(t)
	t.over = true
	t.log.end()
}

// armDeadline sets the timer of the whole turn anew: a human wait moves it.
func (t *Turn) armDeadline() {
	if t.deadline != nil {
		t.deadline.Stop()
		t.deadline = nil
	}
	at, ok := t.budget.Deadline(t.now())
	if !ok || t.reason != "" {
		return
	}
	t.deadline = time.AfterFunc(at.Sub(t.now()), func() { t.Abort(api.ReasonTimeout) })
}
