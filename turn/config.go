package turn

import (
	"context"
	"fmt"
	"net"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

// Running is a call in progress, such as a *supervisor.Call. Its methods must be safe for
// concurrent use.
type Running interface {
	// Abort ends the call; a second Abort kills at once. It must not block, because the
	// turn waits for it. After the call's end it does nothing.
	Abort(api.Reason)
	// Result waits for the call's result, which is never nil.
	Result() *api.Result
}

// Processes may be implemented by a Running, as by *supervisor.Call. Its methods must be
// safe for concurrent use.
type Processes interface {
	// Gone returns a channel that is closed when the call has no process left.
	Gone() <-chan struct{}
	// Current returns the processes' present usage; ok is false if all have ended.
	Current() (now cgroup.Current, ok bool)
}

var _ Processes = (*supervisor.Call)(nil)

// processesOf returns r as Processes, or a value without processes.
func processesOf(r Running) Processes {
	if p, ok := r.(Processes); ok {
		return p
	}
	return noProcesses{}
}

type noProcesses struct{}

func (noProcesses) Gone() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}

func (noProcesses) Current() (none cgroup.Current, ok bool) { return none, false }

// Config configures a Manager. Start and Tool must be set. Its functions must be safe for
// concurrent use: different turns call them at the same time.
type Config struct {
	// Start starts one call, like Supervisor.Start. It may block while it prepares the
	// call. If ctx ends before that, Start gives up, and the Result says so.
	Start func(ctx context.Context, r supervisor.Request) Running
	// StartWaits is set if Start waits for Request.OnRecord (or, for a worker's call,
	// Placed) before the tool starts, as a supervisor's and a fleet's do. The call is then
	// prepared while its record is written. Otherwise Start is called after that.
	StartWaits bool
	// Tool returns the tool with the name that the model uses. It must not block:
	// slow work belongs in Tool.Describe.
	Tool func(name string) (Tool, bool)
	// Journal stores all events; nil stores none.
	Journal Journal
	// History reads the Journal for readers of events that are no longer in
	// memory. With nil, such readers get a gap.
	History History
	// Recall reads results from the Journal. With it, turns do not keep results in memory
	// that exceed their bound.
	Recall Recall
	// Observe, if not nil, is called with all records in order, including those
	// that the journal failed to store, after everyone who waited for them was
	// released. The turn waits for Observe.
	Observe func(records []Record)
	// Trace, if not nil, begins the span of a call that is about to start. It gets the trace
	// context that the call came with, if any, and returns the call's, which is passed to the
	// tool. It must not block.
	Trace func(parent string) (own string)
	// EventOutputBytes bounds the output in the events of each call, as in
	// supervisor.Request: 0 means its default, negative no output.
	EventOutputBytes int64
	// Interactor asks humans. If it is nil, interactions wait for Turn.Answer. Otherwise
	// the first answer by either way counts.
	Interactor Interactor
	// Profiles, if not nil, returns the operator's timeouts for the profiles of
	// interactions, by the names in package budget. A tool's are in its Request, and come
	// after these.
	Profiles func() map[string][]budget.Ask
	// Health returns what session_status says about the host. nil, or more than
	// 160 bytes of JSON, adds nothing. Health and Tool must not call methods of
	// turns: a turn waits for them.
	Health func() any
	// Child serves the requests of a call whose tool has ChildTurns, at a socket that only
	// the call can reach, until l is closed. It must then end the turns that it began for
	// the call. If Child is nil, such calls get a warning.
	Child func(l net.Listener, of api.Place)
	// Program, if not nil, returns the hash of the program that a call of the request would
	// run, like Supervisor.Program. It may block. Lasting approvals are bound to that
	// program.
	Program func(r supervisor.Request) (sha256 string, err error)
	// Approvals stores lasting approvals; nil keeps them in memory.
	Approvals *Approvals
	// Parallel bounds the running calls of one turn. 0 means 8, or the default
	// number of a supervisor's slots if that is smaller: its queue is for calls of
	// different turns, and refuses those that wait too long.
	Parallel int
	// NoStatus turns the built-in session_status off, so that Tool may define it.
	NoStatus bool
	// Logger receives the log; nil discards it.
	Logger hclog.Logger
}

// Supervised returns a Config.Start that starts calls by s.
func Supervised(s *supervisor.Supervisor) func(context.Context, supervisor.Request) Running {
	return func(ctx context.Context, r supervisor.Request) Running { return s.Start(ctx, r) }
}

// Spec describes a turn to begin. The zero value is a turn without an owner, with the
// default bounds.
type Spec struct {
	// ID is the turn's ID; if empty, one is made. Turns with the same SessionID share a
	// session_status for as long as the Manager remembers them; a turn without one has
	// its own.
	ID, AgentID, SessionID string
	// ApprovalSession is the session of approvals for a session, if it is not
	// SessionID. Call Approvals.EndSession when it ends.
	ApprovalSession string
	// Owner is the identity that began the turn; it may be empty. A child always has
	// its parent's. Equal SessionIDs of different owners are different sessions.
	Owner string
	// View, if not nil, returns each tool as the turn may use it, which must not allow
	// more than its argument, or false to hide the tool. It is called at each lookup of
	// a tool, and must not block. A child has its parent's.
	View func(Tool) (Tool, bool)
	// Most bounds the active turns of the Owner, including children; 0 means no bound.
	// A child has its parent's.
	Most int
	// Room, if not nil, is called before the turn begins, and before each of its calls.
	// An error says why the journal has no room for them. It must not block or call
	// methods of turns. A child has its parent's.
	Room func() error
	// ParentID makes the turn a child: an abort of the parent aborts it. A turn has at
	// most MaxDepth turns above it.
	ParentID string
	// Budget bounds the turn's calls and times; the zero value means the defaults of
	// package budget.
	Budget budget.TurnSpec
	// Single is set for a turn of one batch. The journal gets the turn's end with the
	// batch's, and, without an ID, its beginning with the batch's; the batch's results report
	// a failure of the journal. The turn is over after Run or, if results are only in the
	// journal, at End. A single call of a tool with Request.Tool.ReadOnly is journalled with
	// its result, unless that takes longer than 10 ms.
	Single bool
	// Headless is set if nobody can be asked: interactions are denied at once.
	Headless bool
	// OpensAddresses is set if the ClientInteractor of a Headless turn can have an address
	// opened for a server that asks for it.
	OpensAddresses bool
	// Waits are timeouts for humans by kind of interaction, within the configured
	// bounds. Other kinds have the configured timeout. A Question's Timeout takes
	// precedence.
	Waits map[api.InteractionKind]time.Duration
}

// check returns an error for an invalid spec.
func (s Spec) check() error {
	for _, id := range []string{s.ID, s.AgentID, s.SessionID, s.ParentID, s.Owner} {
		if !utf8.ValidString(id) {
			return fmt.Errorf("%q is not UTF-8, as ids and owners must be: give another", id)
		}
	}
	if err := s.Budget.Check(); err != nil {
		return fmt.Errorf("its budget: %w", err)
	}
	return checkWaits(s.Waits)
}
