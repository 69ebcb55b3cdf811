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

// Warm holds what was made early for a call until that starts. Its methods may be called from
// any goroutine.
type Warm struct {
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
func (w *Warm) fill(has early, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has, w.err = has, err
	close(w.made)
	if err != nil {
		close(w.gone)
	}
	w.drop()
}

// take waits until it is made, and the caller has it then. One that was given up is not to
// be had any more. Where ctx ends first, it waits until nothing is left of it: so long the
// call has not ended.
func (w *Warm) take(ctx context.Context) (early, error) {
	w.goOn(nil)
	select {
	case <-w.made:
	case <-ctx.Done():
		<-w.Leave()
		return early{}, context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.has
	switch {
	case w.err != nil:
	case has.group == nil:
		return has, errGivenUp
	default:
		w.has = early{}
		close(w.gone)
	}
	return has, w.err
}

// Leave gives up what nobody has taken, without a wait. gone is closed once nothing is left
// of that; of a nil one nothing is.
func (w *Warm) Leave() (gone <-chan struct{}) {
	if w == nil {
		return nothingLeft
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = true
	w.stop()
	w.drop()
	return w.gone
}

var nothingLeft = func() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}()

// drop is called while mu is held.
func (w *Warm) drop() {
	if has := w.has; w.left && has.group != nil {
		w.has = early{}
		w.discard(has, func() { close(w.gone) })
	}
}

// goOn says what is to be in the group, unless that was said before.
func (w *Warm) goOn(o *order) {
	select {
	case w.next <- o:
	default:
	}
}

// whatNext waits until it is known what is to be in the group.
func (w *Warm) whatNext(ctx context.Context) *order {
	select {
	case o := <-w.next:
		return o
	case <-ctx.Done():
		return nil
	}
}

// maxAheadName leaves space in the name of a group for what tells it from others of its call.
const maxAheadName = 100

// aheadName is new whatever else there is of the call: another try of it may not be gone.
func aheadName(call *prepare.Prepared) string {
	return call.ID[:min(len(call.ID), maxAheadName)] + "-" + rand.Text()[:8]
}

// MakeGroup has the group of a call's processes made beside what else is decided about it
// once its limits are known. What is to be in it waits for WarmUp.
func (m *Maker) MakeGroup(call *prepare.Prepared) *Warm {
	ctx, stop := context.WithCancel(m.Closing)
	w := m.newWarm(stop)
	o := groupOf(call, aheadName(call))
	m.Tasks.Run("make a group", func() {
		group, err := m.group(o)
		if err != nil {
			w.fill(early{}, err)
			return
		}
		m.fill(ctx, w, group)
	})
	return w
}

func (m *Maker) newWarm(stop context.CancelFunc) *Warm {
	return &Warm{stop: stop, next: make(chan *order, 1), made: make(chan struct{}), gone: make(chan struct{}), discard: func(e early, gone func()) {
		m.Tasks.Run("remove a group", func() { m.discard(e); gone() })
	}}
}

// WarmUp has as much of a call's processes made beside what comes before its start as
// runs nothing of the tool. The adapter of a command waits for the host's connection, before
// which the command does not exist; a plugin would begin, and has a group alone. A sandbox that
// waits takes the place of what it has, which is nil for nothing.
func (m *Maker) WarmUp(call *prepare.Prepared, has *Warm) *Warm {
	w := m.Spares.take(call)
	switch {
	case w != nil:
		has.Leave()
	case has != nil:
		w = has
	default:
		w = m.MakeGroup(call)
	}
	var whole *order
	if dir := call.Plan.SocketDir(); call.Request.Command != nil && dir != "" { // without one, its connection makes a folder first
		o := orderOf(call, aheadName(call), host.Environment(dir), "") // it is in the group that is there
		whole = &o
	}
	w.goOn(whole)
	return w
}

// fill puts in a group, and what is to be in that.
func (m *Maker) fill(ctx context.Context, w *Warm, group *cgroup.Group) {
	o := w.whatNext(ctx)
	if o == nil {
		w.fill(early{group: group}, nil)
		return
	}
	o.group = group
	p, over, err := m.make(ctx, *o, func() {})
	if err != nil {
		w.fill(early{}, err)
		return
	}
	w.fill(early{p.group, p}, nil)
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
