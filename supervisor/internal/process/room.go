package process

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// early is made before it is known whether a call starts: the group of its processes, and
// for a command the process.
type early struct {
	group   *cgroup.Group
	process *Process
	over    func() // gives back the process's turn among starts
}

// room holds that until the call starts. Its methods may be called from any goroutine.
type room struct {
	discard func(early)
	stop    context.CancelFunc // ends the making
	made    chan struct{}      // closed once has or err is there

	mu   sync.Mutex
	has  early // until it is taken or given up
	err  error
	left bool
}

var errGivenUp = errors.New("the call was given up before its processes were started")

// make makes it, once.
func (r *room) make(make func() (early, error)) {
	has, err := make()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has, r.err = has, err
	close(r.made)
	r.drop()
}

// take waits until it is made, and the caller has it then. One that was given up is not to
// be had any more.
func (r *room) take(ctx context.Context) (early, error) {
	select {
	case <-r.made:
	case <-ctx.Done():
		r.Leave()
		return early{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.has
	r.has = early{}
	if has.group == nil && r.err == nil {
		return has, errGivenUp
	}
	return has, r.err
}

// Leave gives up what nobody has taken, without a wait.
func (r *room) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.stop()
	r.drop()
}

// drop is called while mu is held.
func (r *room) drop() {
	if r.left && r.has.group != nil {
		r.discard(r.has)
		r.has = early{}
	}
}

// maxAheadName leaves the name of a group room for what tells it from others of its call.
const maxAheadName = 100

// MakeRoom has as much of a call's processes made beside what comes before its start as
// runs nothing of the tool. The adapter of a command waits for the host's connection, before
// which the command does not exist; a plugin would begin, and has a group alone. The group's
// name is new whatever else there is of the call: another try of it may not be gone.
func (m *Maker) MakeRoom(call *prepare.Prepared) {
	ctx, stop := context.WithCancel(m.Closing)
	r := &room{stop: stop, made: make(chan struct{}), discard: func(e early) {
		m.Tasks.Run("remove a group", func() { m.discard(e) })
	}}
	call.Room = r
	dir := call.Plan.SocketDir()
	o := orderOf(call, call.ID[:min(len(call.ID), maxAheadName)]+"-"+rand.Text()[:8], host.Environment(dir), "")
	whole := o.command && dir != "" // without one, its connection makes a folder first
	m.Tasks.Run("make a group", func() {
		r.make(func() (e early, err error) {
			if !whole {
				e.group, err = m.group(o)
				return e, err
			}
			e.process, e.over, err = m.make(ctx, o, func() {})
			if err == nil {
				e.group = e.process.group
			}
			return e, err
		})
	})
}

// discard removes what was made for a call that has not started.
func (m *Maker) discard(e early) {
	if e.process == nil {
		m.Discard(e.group)
		return
	}
	e.over()
	e.process.watch()
	_ = e.process.pump(&spec.Command{})
	e.process.Destroy()
}
