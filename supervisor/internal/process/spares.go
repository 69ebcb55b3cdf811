package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

const (
	// spareTime is how long a sandbox waits for a call, and keptFor how long it is sure of
	// its place where others want that.
	spareTime, keptFor = time.Minute, time.Second
	// sparesEach wait for calls that are alike: while one of them has a call, which may end
	// before the next is made, there is another.
	sparesEach = 2
)

// Spares are sandboxes that wait for a call, each with a group and a launcher of its own,
// and with nothing of a tool. They are made behind a call, for those that are like it.
type Spares struct {
	most   int
	making atomic.Int64

	mu    sync.Mutex
	list  []*spare // the newest is the last
	taken int64
}

type spare struct {
	*Warm
	key    string
	limits string // its group's
	made   time.Time
	expiry *time.Timer
}

// NewSpares lets so many wait; none if there are to be fewer than one.
func NewSpares(most int) *Spares { return &Spares{most: most} }

// spareOf is what a sandbox is made by that waits for calls like this one; ok is false
// where none may. What covers files of toolhost's own must be as new as the call: they may
// be replaced, and are then covered no more.
func spareOf(c *prepare.Prepared) (o order, ok bool) {
	if c.Work != prepare.ForCall || c.Outlasts() || c.Alone() != "" || c.Plan.SocketDir() == "" || c.Policy.Masked() || !c.Policy.Watched() {
		return order{}, false
	}
	return order{
		groupOrder: groupOf(c, ""), pool: c.Request.Pool, weight: 1, // all others have their turns before
		command: c.Request.Command != nil, spec: sandbox.Spec{Plan: c.Plan, Waits: true, Lease: c.Request.Lease},
	}, true
}

// key is all by which a sandbox can differ from others.
func (o order) key() string {
	return fmt.Sprintf("%t %s %s", o.command, o.groupOrder.key(), o.spec.Key())
}

func (o groupOrder) key() string { return fmt.Sprintf("%#v %#v", o.share, o.limits) }

// take is the one that has waited for longest for such a call; nil if none does.
func (s *Spares) take(c *prepare.Prepared) *Warm {
	if n, _ := s.Load(); n == 0 {
		return nil
	}
	o, ok := spareOf(c)
	if !ok {
		return nil
	}
	key := o.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(one *spare) bool { return one.key == key })
	if i < 0 {
		return nil
	}
	s.taken++
	return s.remove(i).Warm
}

// May says whether one waits that has the limits of a call, which it may get: of that no more
// than these is known.
func (s *Spares) May(call *prepare.Prepared) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return false
	}
	limits := groupOf(call, "").key()
	return slices.ContainsFunc(s.list, func(one *spare) bool { return one.limits == limits })
}

// remove takes one out of the list. The caller has locked, as for what follows.
func (s *Spares) remove(i int) *spare {
	one := s.list[i]
	one.expiry.Stop()
	s.list = slices.Delete(s.list, i, i+1)
	return one
}

// fits makes room for one more of its kind, if it may be. It takes the place of the oldest
// only where none of its kind waits.
func (s *Spares) fits(key string) bool {
	alike := 0
	for _, one := range s.list {
		if one.key == key {
			alike++
		}
	}
	switch {
	case alike >= sparesEach:
		return false
	case len(s.list) < s.most:
		return true
	case alike > 0 || s.most <= 0 || time.Since(s.list[0].made) < keptFor:
		return false
	}
	s.remove(0).Leave()
	return true
}

func (s *Spares) add(w *Warm, key, limits string) {
	one := &spare{Warm: w, key: key, limits: limits, made: time.Now()}
	one.expiry = time.AfterFunc(spareTime, func() { s.drop(func(other *spare) bool { return other == one }) })
	s.list = append(s.list, one)
}

// drop gives up those that are meant. It does not wait, and locks.
func (s *Spares) drop(of func(*spare) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		if of(s.list[i]) {
			s.remove(i).Leave()
		}
	}
}

// Drop gives up all. It does not wait.
func (s *Spares) Drop() { s.drop(func(*spare) bool { return true }) }

// giveWay gives up all, and waits until they are gone: what they have may be what a call
// cannot have. It is false where none waited.
func (s *Spares) giveWay(ctx context.Context) bool {
	var all []*Warm
	s.drop(func(one *spare) bool {
		all = append(all, one.Warm)
		return true
	})
	for _, w := range all {
		select {
		case <-w.gone:
		case <-ctx.Done():
			return false
		}
	}
	return len(all) > 0
}

// Load is how many wait, and how many calls have had one.
func (s *Spares) Load() (waiting int, taken int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list), s.taken
}

// Spare has sandboxes made for calls that follow this one, which has ended, unless other calls
// are being started: these need the time. It does not wait.
func (m *Maker) Spare(call *prepare.Prepared) {
	o, ok := spareOf(call)
	if !ok || m.Closing.Err() != nil || int64(m.Starts.UnderWay()) > m.Spares.making.Load() {
		return
	}
	key := o.key()
	m.Spares.mu.Lock()
	defer m.Spares.mu.Unlock()
	for m.Spares.fits(key) {
		o.name = "spare-" + rand.Text()
		m.Spares.add(m.makeSpare(o), key, o.groupOrder.key())
	}
}

// makeSpare makes one that goes on once it is known what is to be in it.
func (m *Maker) makeSpare(o order) *Warm {
	ctx, stop := context.WithCancel(m.Closing)
	w := m.newWarm(stop)
	w.waits = true
	m.Spares.making.Add(1)
	made := sync.OnceFunc(func() { m.Spares.making.Add(-1) })
	m.Tasks.Run("make a sandbox", func() {
		defer m.Spares.drop(func(one *spare) bool { return one.Warm == w }) // unless a call has it
		defer made()
		p, over, err := m.make(ctx, o, func() {})
		if err != nil {
			w.fill(early{}, err)
			return
		}
		p.group.Rest()
		select {
		case <-p.launcher.Built():
		case <-ctx.Done():
		}
		over()
		made()
		select {
		case next := <-w.next:
			if next != nil {
				_ = p.begin(next.spec) // the call sees whether it has ended
			}
		case <-p.launcher.Gone():
		case <-ctx.Done():
		}
		w.fill(early{p.group, p}, nil)
	})
	return w
}
