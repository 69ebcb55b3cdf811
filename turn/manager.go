package turn

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget/memory"
)

// Manager is the registry of active turns. Its methods are safe for concurrent
// use.
type Manager struct {
	config Config

	mu     sync.Mutex
	active map[string]*Turn
	closed bool
	// sessions are by their owners and ids.
	sessions map[string]*session

	asking sync.Map     // the *Turn of each interaction that waits, by its id
	kept   atomic.Int64 // bytes of events that the active turns hold
	held   atomic.Int64 // bytes of results that nobody has been given yet
	room   int64        // for these
	outage outage
	late   late
}

func defaultParallel() int { return min(8, 2*runtime.NumCPU()) }

// New returns a Manager without turns. The functions and values in config must not be
// changed afterwards.
func New(config Config) *Manager {
	config.Logger = cmp.Or(config.Logger, hclog.NewNullLogger())
	if config.Parallel <= 0 {
		config.Parallel = defaultParallel()
	}
	if config.Approvals == nil {
		config.Approvals = NewApprovals(ApprovalOptions{})
	}
	return &Manager{config: config, room: memory.Within(maxHeldBytes, maxHeldPart), active: map[string]*Turn{}, sessions: map[string]*session{}}
}

// maxActive bounds the active turns. One owner may have at most ownPart times as many as
// are left, so that no owner can take the last.
const (
	maxActive = 1024
	ownPart   = 4
)

// Begin begins a turn; the caller must call End. It fails if the Manager is closed, spec is
// invalid, or the journal cannot be written, and with ErrActive, ErrTaken, ErrTooMany,
// ErrNoRoom, ErrTooDeep or ErrParentOver.
func (m *Manager) Begin(spec Spec) (*Turn, error) {
	fresh := spec.ID == ""
	if fresh {
		spec.ID = rand.Text()
	}
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("cannot begin turn %q: %w", spec.ID, err)
	}
	t := newTurn(m, spec)
	t.recorded.newID = fresh
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

// ErrTaken is returned by a Journal that already has a turn of the same ID.
var ErrTaken = errors.New("a turn of this id is on record")

// ErrActive is returned by Begin if an active turn has the same ID.
var ErrActive = errors.New("it is active already")

// MaxDepth is the greatest number of ancestors of a turn.
const MaxDepth = 8

// ErrTooMany is returned by Begin if the owner has too many active turns.
var ErrTooMany = errors.New("too many turns of its owner are active")

// ErrNoRoom is returned by Begin if Spec.Room fails.
var ErrNoRoom = errors.New("there is no room on record")

// ErrTooDeep is returned by Begin if the turn would have more than MaxDepth ancestors.
var ErrTooDeep = fmt.Errorf("there are %d turns above it already, and no more are possible", MaxDepth)

// ErrParentOver is returned by Begin if the parent is not active, or was aborted.
var ErrParentOver = errors.New("that turn is over, was aborted, or never existed")

func (m *Manager) admit(t *Turn, spec Spec) error {
	switch {
	case m.closed:
		return errors.New("cannot begin a turn: the registry is closed")
	case m.active[spec.ID] != nil:
		return fmt.Errorf("cannot begin turn %q: %w; give another id", spec.ID, ErrActive)
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
		return fmt.Errorf("cannot begin a turn: %w: the free places are kept for other owners; end some", ErrTooMany)
	}
	if t.most > 0 && m.owned(t.info.Owner) >= t.most {
		return fmt.Errorf("cannot begin a turn: %w: %s may have %d at once (access: quota: turns)", ErrTooMany, t.info.Owner, t.most)
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

// Approvals returns the lasting approvals: Config.Approvals if set, else the Manager's.
func (m *Manager) Approvals() *Approvals { return m.config.Approvals }

// Turn returns the active turn with the given ID.
func (m *Manager) Turn(id string) (*Turn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.active[id]
	return t, ok
}

// Asking returns the turn of a pending interaction.
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

// Active returns snapshots of all turns, oldest first. Turns that end meanwhile may be missing.
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

// Close aborts all turns and waits until they are over. From then on Begin fails. Close may
// be called more than once.
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
	m.closeLate()
}
