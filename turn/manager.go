package turn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

// Running is a call under way; *supervisor.Call is one.
type Running interface {
	Abort(api.Reason)
	Result() *api.Result // waits for it
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

// Config of a Manager.
type Config struct {
	// Start begins one call, as Supervisor.Start does.
	Start func(ctx context.Context, r supervisor.Request) Running
	// Tool finds a tool by the name that the model uses, at once: what takes time
	// is for the tool's Describe.
	Tool func(name string) (Tool, bool)
	// Journal keeps all events; nil keeps none.
	Journal Journal
	// History reads what Journal keeps, for readers of events that are no longer
	// in memory, from any goroutine; nil cannot, and they get a gap.
	History History
	// Observe, if not nil, is called with all records in order, also those that
	// the journal fails to keep, after their waiters go on. The turn waits for
	// it. It may be called by several turns at once.
	Observe func(records []Record)
	// Trace, if not nil, begins the span of a call that is about to start: it is given the
	// trace context that the call came with, if any, and returns the call's own, which the
	// tool is told. It must not wait, and may be called by several turns at once.
	Trace func(parent string) (own string)
	// EventOutputBytes as in supervisor.Request.
	EventOutputBytes int64
	// Interactor asks humans; nil leaves interactions to Turn.Answer.
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

// Supervised makes a supervisor's Start fit for Config.
func Supervised(s *supervisor.Supervisor) func(context.Context, supervisor.Request) Running {
	return func(ctx context.Context, r supervisor.Request) Running { return s.Start(ctx, r) }
}

// Manager is the registry of active turns. Its methods may be called from any
// goroutine.
type Manager struct {
	config Config

	mu     sync.Mutex
	active map[string]*Turn
	closed bool
	// sessions are by their owners and ids.
	sessions map[string]*session

	asking sync.Map     // the *Turn of each interaction that waits, by its id
	kept   atomic.Int64 // bytes of events that the active turns hold
	outage outage
}

func defaultParallel() int { return min(8, 2*runtime.NumCPU()) }

// New makes a registry.
func New(config Config) *Manager {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	if config.Parallel <= 0 {
		config.Parallel = defaultParallel()
	}
	if config.Approvals == nil {
		config.Approvals = NewApprovals(ApprovalOptions{})
	}
	return &Manager{config: config, active: map[string]*Turn{}, sessions: map[string]*session{}}
}

// Spec begins a turn.
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
	Budget   budget.TurnSpec
	// Single says that the turn has one batch, with which it begins and ends on record:
	// a journal that fails is then the batch's results' affair, and after Run the turn
	// is over. A single call of a tool that is confirmed as ReadOnly is put on record
	// with its result, unless that takes longer than 10 ms.
	Single bool
	// Headless says that nobody can be asked: interactions are denied at once.
	Headless bool
	// Waits are how long to wait for humans, by kind, within the bounds that are
	// configured; what is not in it has the configured time. A Question's own Timeout
	// comes before these.
	Waits map[api.InteractionKind]time.Duration
}

// Info describes an active turn.
type Info struct {
	TurnID    string    `json:"turnId"`
	AgentID   string    `json:"agentId"`
	SessionID string    `json:"sessionId"`
	Owner     string    `json:"owner,omitempty"`
	ParentID  string    `json:"parentTurnId,omitempty"`
	Depth     int       `json:"depth,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	// CurrentTools are the calls that run or wait.
	CurrentTools  []CurrentTool `json:"currentTools"`
	ToolCallCount int           `json:"toolCallCount"`
	// Streaming says that the model streams, as far as the host tells. StreamMs is how
	// long it has in all, StreamLeftMs how long it may still.
	Streaming    bool  `json:"streaming"`
	StreamMs     int64 `json:"streamMs"`
	StreamLeftMs int64 `json:"streamLeftMs"`
	// TimedOutTools are the names of tools whose time was over, once each.
	TimedOutTools       []string          `json:"timedOutTools"`
	PendingInteractions []api.Interaction `json:"pendingInteractions"`
}

// CurrentTool is a call of the batch under way.
type CurrentTool struct {
	CallID    string    `json:"toolCallId"`
	Tool      string    `json:"toolName"`
	State     string    `json:"state"` // queued, asking or running
	StartedAt time.Time `json:"startedAt,omitzero"`
	// TimeoutMs is the timeout in force, once the call runs; 0 is infinite.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// HumanWaitMs is how long it has waited for humans since it began; its clocks
	// stood still for so long.
	HumanWaitMs int64 `json:"humanWaitMs,omitempty"`
	// Worker is the one of a fleet that was told to start it; empty on this machine.
	Worker string `json:"worker,omitempty"`
	// Running is the call that Config.Start has begun; nil before, and for
	// calls of the turn's own.
	Running Running `json:"-"`
}

// maxActive bounds the turns at once. One owner may have ownPart times as many as
// are left: the last is out of anyone's reach.
const (
	maxActive = 1024
	ownPart   = 4
)

// Begin begins a turn, which End must end.
func (m *Manager) Begin(spec Spec) (*Turn, error) {
	if spec.ID == "" {
		spec.ID = rand.Text()
	}
	if err := checkWaits(spec.Waits); err != nil {
		return nil, fmt.Errorf("cannot begin turn %q: %w", spec.ID, err)
	}
	t := newTurn(m, spec)
	m.mu.Lock()
	err := m.admit(t, spec)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := t.start(); err != nil {
		return nil, err
	}
	return t, nil
}

// ErrTaken is a Journal's error for a turn whose id it has on record.
var ErrTaken = errors.New("a turn of this id is on record")

// MaxDepth bounds the turns above one.
const MaxDepth = 8

// ErrTooMany is why an owner can begin no more turns for now.
var ErrTooMany = errors.New("too many turns of its owner are active: end some")

// ErrNoRoom is why an owner's turns can have nothing more on record for now.
var ErrNoRoom = errors.New("there is no room on record")

// ErrTooDeep is why a turn cannot begin below another one.
var ErrTooDeep = fmt.Errorf("there are %d turns above it already, and no more are possible", MaxDepth)

// ErrParentOver is why a turn cannot begin as the child of another one.
var ErrParentOver = errors.New("that turn is over, was aborted, or never existed")

func (m *Manager) admit(t *Turn, spec Spec) error {
	switch {
	case m.closed:
		return errors.New("cannot begin a turn: the registry is closed")
	case m.active[spec.ID] != nil:
		return fmt.Errorf("cannot begin turn %q: it is active already; give another id", spec.ID)
	case len(m.active) >= maxActive:
		return fmt.Errorf("cannot begin a turn: %d are active; end some", maxActive)
	}
	if spec.ParentID != "" {
		parent := m.active[spec.ParentID]
		if parent == nil || parent.aborted.Load() {
			return fmt.Errorf("cannot begin a child of turn %q: %w", spec.ParentID, ErrParentOver)
		}
		if t.info.Depth = parent.info.Depth + 1; t.info.Depth > MaxDepth {
			return fmt.Errorf("cannot begin a child of turn %q: %w", spec.ParentID, ErrTooDeep)
		}
		t.info.Owner, t.view, t.most, t.room = parent.info.Owner, parent.view, parent.most, parent.room
	}
	if t.info.Owner != "" && m.owned(t.info.Owner) >= ownPart*(maxActive-len(m.active)) {
		return fmt.Errorf("cannot begin a turn: the room for turns is for others, too: %w", ErrTooMany)
	}
	if t.most > 0 && m.owned(t.info.Owner) >= t.most {
		return fmt.Errorf("cannot begin a turn: %s may have %d turns at once (access: quota: turns): %w", t.info.Owner, t.most, ErrTooMany)
	}
	if err := t.hasRoom(); err != nil {
		return fmt.Errorf("cannot begin a turn: %w: %w", ErrNoRoom, err)
	}
	m.active[spec.ID] = t
	t.budget.session = m.join(t.info.Owner, spec.SessionID, t.info.StartedAt)
	return nil
}

// owned counts the active turns of an owner. The Manager is locked.
func (m *Manager) owned(owner string) (n int) {
	for _, t := range m.active {
		if t.info.Owner == owner {
			n++
		}
	}
	return n
}

func (m *Manager) remove(t *Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active[t.info.TurnID] == t {
		delete(m.active, t.info.TurnID)
		t.budget.session.leave(t.now())
		m.config.Approvals.endTurn(t.info.TurnID)
	}
}

// Approvals are what people have approved for more than one call.
func (m *Manager) Approvals() *Approvals { return m.config.Approvals }

// Turn finds an active turn.
func (m *Manager) Turn(id string) (*Turn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.active[id]
	return t, ok
}

// Asking finds the turn that an interaction belongs to, while it waits for an answer.
func (m *Manager) Asking(id string) (*Turn, bool) {
	t, ok := m.asking.Load(id)
	if !ok {
		return nil, false
	}
	return t.(*Turn), true
}

func (m *Manager) turns(keep func(*Turn) bool) (list []*Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.active {
		if keep(t) {
			list = append(list, t)
		}
	}
	return list
}

// Active describes all turns, oldest first.
func (m *Manager) Active() []Info {
	list := []Info{}
	for _, t := range m.turns(func(*Turn) bool { return true }) {
		if info, ok := t.Info(); ok {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b Info) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c
		}
		return strings.Compare(a.TurnID, b.TurnID)
	})
	return list
}

// Close aborts all turns and waits until they are over.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	all := m.turns(func(*Turn) bool { return true })
	var ending sync.WaitGroup
	for _, t := range all {
		ending.Go(func() {
			t.Abort(api.ReasonShutdown)
			t.End()
		})
	}
	ending.Wait()
}
