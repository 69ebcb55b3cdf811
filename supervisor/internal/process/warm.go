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
}

// Room holds what was made early until the call starts. Its methods may be called from any goroutine.
type Room struct {
	discard func(has early, gone func()) // does not wait
	stop    context.CancelFunc           // ends the making
	next    chan *order                  // what is to be in the group; nil for nothing
	made    chan struct{}                // closed once has or err is there
	gone    chan struct{}                // closed once nothing is left in it
	waits   bool                         // it was made before any call: one that takes it can do without

	mu   sync.Mutex
	has  early // until it is taken or given up
	err  error
	left bool
}

var errGivenUp = errors.New("the call was given up before its processes were started")

// fill puts in what was made, once.
func (r *Room) fill(has early, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has, r.err = has, err
	close(r.made)
	if err != nil {
		close(r.gone)
	}
	r.drop()
}

// take waits until it is made, and the caller has it then. One that was given up is not to
// be had any more. Where ctx ends first, it waits until nothing is left of it: so long the
// call has not ended.
func (r *Room) take(ctx context.Context) (early, error) {
	r.goOn(nil)
	select {
	case <-r.made:
	case <-ctx.Done():
		<-r.Leave()
		return early{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.has
	switch {
	case r.err != nil:
	case has.group == nil:
		return has, errGivenUp
	default:
		r.has = early{}
		close(r.gone)
	}
	return has, r.err
}

// Leave gives up what nobody has taken, without a wait. gone is closed once nothing is left
// of that; of no room nothing is.
func (r *Room) Leave() (gone <-chan struct{}) {
	if r == nil {
		return nothingLeft
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.stop()
	r.drop()
	return r.gone
}

var nothingLeft = func() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}()

// drop is called while mu is held.
func (r *Room) drop() {
	if has := r.has; r.left && has.group != nil {
		r.has = early{}
		r.discard(has, func() { close(r.gone) })
	}
}

// goOn says what is to be in the group, unless that was said before.
func (r *Room) goOn(o *order) {
	select {
	case r.next <- o:
	default:
	}
}

// whatNext waits until it is known what is to be in the group.
func (r *Room) whatNext(ctx context.Context) *order {
	select {
	case o := <-r.next:
		return o
	case <-ctx.Done():
		return nil
	}
}

// maxAheadName leaves the name of a group room for what tells it from others of its call.
const maxAheadName = 100

// aheadName is new whatever else there is of the call: another try of it may not be gone.
func aheadName(call *prepare.Prepared) string {
	return call.ID[:min(len(call.ID), maxAheadName)] + "-" + rand.Text()[:8]
}

// MakeGroup has the group of a call's processes made beside what else is decided about it
// once its limits are known. What is to be in it waits for MakeRoom.
func (m *Maker) MakeGroup(call *prepare.Prepared) *Room {
	ctx, stop := context.WithCancel(m.Closing)
	r := m.newRoom(stop)
	o := groupOf(call, aheadName(call))
	m.Tasks.Run("make a group", func() {
		group, err := m.group(o)
		if err != nil {
			r.fill(early{}, err)
			return
		}
		m.fill(ctx, r, group)
	})
	return r
}

func (m *Maker) newRoom(stop context.CancelFunc) *Room {
	return &Room{stop: stop, next: make(chan *order, 1), made: make(chan struct{}), gone: make(chan struct{}), discard: func(e early, gone func()) {
		m.Tasks.Run("remove a group", func() { m.discard(e); gone() })
	}}
}

// MakeRoom has as much of a call's processes made beside what comes before its start as
// runs nothing of the tool. The adapter of a command waits for the host's connection, before
// which the command does not exist; a plugin would begin, and has a group alone. A sandbox that
// waits takes the place of the room that it has; nil is none.
func (m *Maker) MakeRoom(call *prepare.Prepared, has *Room) *Room {
	r := m.Spares.take(call)
	switch {
	case r != nil:
		has.Leave()
	case has != nil:
		r = has
	default:
		r = m.MakeGroup(call)
	}
	var whole *order
	if dir := call.Plan.SocketDir(); call.Request.Command != nil && dir != "" { // without one, its connection makes a folder first
		o := orderOf(call, aheadName(call), host.Environment(dir), "") // it is in the group that is there
		whole = &o
	}
	r.goOn(whole)
	return r
}

// fill puts in a group, and what is to be in that.
func (m *Maker) fill(ctx context.Context, r *Room, group *cgroup.Group) {
	o := r.whatNext(ctx)
	if o == nil {
		r.fill(early{group: group}, nil)
		return
	}
	o.group = group
	p, over, err := m.make(ctx, *o, func() {})
	if err != nil {
		r.fill(early{}, err)
		return
	}
	r.fill(early{p.group, p}, nil)
	_ = p.launcher.Started(ctx) // who takes it sees why not
	over()                      // what waits for its call does not hold up other starts
}

// discard removes what was made for a call that has not started, and returns once it is
// gone.
func (m *Maker) discard(e early) {
	if e.process == nil {
		m.Discard(e.group)
		return
	}
	e.process.watch()
	_ = e.process.pump(&spec.Command{})
	e.process.Destroy()
	<-e.process.Freed()
}
