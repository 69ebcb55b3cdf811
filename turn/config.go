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

// Running is a call under way; *supervisor.Call is one. Its methods may be called from
// any goroutine.
type Running interface {
	// Abort ends the call, and at once if it is called again. It must not wait: a turn
	// does. After the call's end it does nothing.
	Abort(api.Reason)
	// Result waits for the one result that every call has, and is never nil.
	Result() *api.Result
}

// Processes is what a Running may offer beside, as *supervisor.Call does. Its methods may
// be called from any goroutine.
type Processes interface {
	// Gone is closed when none of the call's processes is left.
	Gone() <-chan struct{}
	// Current is what they use now; ok is false if all have ended.
	Current() (now cgroup.Current, ok bool)
}

var _ Processes = (*supervisor.Call)(nil)

// processesOf are those of a call; one that does not offer them has none.
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

// Config of a Manager. Start and Tool must be set. Turns of one Manager call its functions
// at the same time.
type Config struct {
	// Start begins one call, as Supervisor.Start does. It may take as long as a call's
	// preparing takes, and gives that up when ctx ends; the Result says so then.
	Start func(ctx context.Context, r supervisor.Request) Running
	// StartWaits says that Start heeds Request.OnRecord, or Placed for a worker's call, as a
	// supervisor's and a fleet's do:
	// what comes before the start of a call is then done beside its record. Else Start is
	// called behind that.
	StartWaits bool
	// Tool finds a tool by the name that the model uses, at once: what takes time
	// is for the tool's Describe.
	Tool func(name string) (Tool, bool)
	// Journal keeps all events; nil keeps none.
	Journal Journal
	// History reads what Journal keeps, for readers of events that are no longer
	// in memory, from any goroutine; nil cannot, and they get a gap.
	History History
	// Recall reads results that Journal keeps: with it, turns do not hold in memory what
	// there is no room for. nil cannot.
	Recall Recall
	// Observe, if not nil, is called with all records in order, also those that
	// the journal fails to keep, after their waiters go on. The turn waits for
	// it. It may be called by several turns at once.
	Observe func(records []Record)
	// Trace, if not nil, begins the span of a call that is about to start: it is given the
	// trace context that the call came with, if any, and returns the call's own, which the
	// tool is told. It must not wait, and may be called by several turns at once.
	Trace func(parent string) (own string)
	// EventOutputBytes bounds the output in the events of each call, as it does in
	// supervisor.Request: 0 is the default there, negative leaves all output out.
	EventOutputBytes int64
	// Interactor asks humans; nil leaves interactions to Turn.Answer. With one, too,
	// the first answer counts, by either way.
	Interactor Interactor
	// Profiles, if not nil, returns what the operator asks for of timeout profiles, by
	// name: of interactions, those of package budget. Those of a tool are in its
	// Request, and come after these.
	Profiles func() map[string][]budget.Ask
	// Health returns what session_status says about the host; nil says
	// nothing, and so does more than 160 bytes of JSON. Neither it nor Tool may
	// call methods of turns: a turn waits for them.
	Health func() any
	// Child serves a call whose tool has ChildTurns, at a socket that nobody else
	// reaches, until l is closed: then the turns that it has begun for the call are to
	// end. nil serves none, and such calls are told so by a warning.
	Child func(l net.Listener, of api.Place)
	// Program, if not nil, returns the hash of what a call of the request would execute, as
	// Supervisor.Program does, and may take its time: an approval for more than one call is
	// for that program.
	Program func(r supervisor.Request) (sha256 string, err error)
	// Approvals keep what people approve for more than one call; nil keeps it in memory.
	Approvals *Approvals
	// Parallel bounds the calls of one turn that run at once; 0 is 8, or as many
	// as a supervisor runs by default if those are fewer: its queue is for calls
	// of different turns, and refuses those that wait too long.
	Parallel int
	// NoStatus leaves session_status to Tool.
	NoStatus bool
	// Logger is silent if nil.
	Logger hclog.Logger
}

// Supervised makes a supervisor's Start fit for Config.Start.
func Supervised(s *supervisor.Supervisor) func(context.Context, supervisor.Request) Running {
	return func(ctx context.Context, r supervisor.Request) Running { return s.Start(ctx, r) }
}

// Spec is what a turn begins with. The zero value is a turn of nobody in particular, with
// default bounds.
type Spec struct {
	// ID is the turn's; empty makes one. Turns of one SessionID have a session_status
	// in common, for as long as the Manager remembers them; one without it has its
	// own.
	ID, AgentID, SessionID string
	// ApprovalSession is the session that approvals can be for, where it is not
	// SessionID: one whose end Approvals.EndSession is told.
	ApprovalSession string
	// Owner is who has begun it, as the host knows them; empty is
	// nobody in particular. A child has its parent's, whatever is given. Sessions of
	// different owners are different ones.
	Owner string
	// View, if not nil, is each tool as the turn may use it, which must not be
	// looser than what it is given; false: it may know nothing of such a tool. It is
	// called whenever a tool is looked up, and must return at once. A child has its
	// parent's.
	View func(Tool) (Tool, bool)
	// Most bounds the turns of its Owner that are active at once, children too; 0
	// does not. A child has its parent's.
	Most int
	// Room, if not nil, is asked before the turn begins, and before each of its calls:
	// an error is why there is no room for what they leave on record. It must return
	// at once, and not call methods of turns. A child has its parent's.
	Room func() error
	// ParentID makes it a child: an abort of the parent aborts it. There are at most
	// MaxDepth turns above one.
	ParentID string
	// Budget bounds the turn's calls and times; the zero value is the default of package
	// budget.
	Budget budget.TurnSpec
	// Single says that the turn has one batch, with which it ends on record, and without an
	// ID begins: a journal that fails is then the batch's results' affair. After Run the turn
	// is over, unless results of it wait on record: then at End. A single call of a tool that
	// is confirmed as ReadOnly is put on record with its result, unless that takes longer
	// than 10 ms.
	Single bool
	// Headless says that nobody can be asked: interactions are denied at once.
	Headless bool
	// OpensAddresses says that a Headless turn's ClientInteractor can have an address opened all
	// the same, where a server asks for that.
	OpensAddresses bool
	// Waits are how long to wait for humans, by kind, within the bounds that are
	// configured; what is not in it has the configured time. A Question's own Timeout
	// comes before these.
	Waits map[api.InteractionKind]time.Duration
}

// check refuses what no turn can have.
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
