package process

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/cgroup"
)

// What was made early is taken once, or given up: a start that comes later has none.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(*Room)
		want      error
		discarded int
	}{
		"taken before":    {func(r *Room) { r.ready(); _, _ = r.take(t.Context()) }, errGivenUp, 0},
		"left before":     {func(r *Room) { r.ready(); r.Leave() }, errGivenUp, 1},
		"left meanwhile":  {func(r *Room) { r.Leave(); r.ready() }, errGivenUp, 1},
		"could not be":    {func(r *Room) { r.fill(early{}, errFull) }, errFull, 0},
		"there to be had": {func(r *Room) { r.ready() }, nil, 0},
	} {
		discarded, stopped := 0, false
		r := newRoom(func(_ early, gone func()) { discarded++; gone() })
		r.stop = func() { stopped = true }
		c.do(r)
		has, err := r.take(t.Context())
		if !errors.Is(err, c.want) || (has.group == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, want %v", name, has, err, c.want)
		}
		if <-r.Leave(); discarded != c.discarded || !stopped {
			t.Errorf("%s: discarded %d times, want %d; stopped %v", name, discarded, c.discarded, stopped)
		}
	}
}

// A call that ends while its process is still being made waits until that is made and gone.
func TestRoomOfACallThatEnds(t *testing.T) {
	for name, err := range map[string]error{"made": nil, "could not be": errFull} {
		over, end := context.WithCancel(t.Context())
		end()
		stopped, discarding, gone := make(chan struct{}), make(chan func(), 1), false
		r := newRoom(func(_ early, gone func()) { discarding <- gone })
		r.stop = sync.OnceFunc(func() { close(stopped) })
		go func() {
			<-stopped
			if err != nil {
				gone = true
				r.fill(early{}, err)
				return
			}
			r.ready()
			isGone := <-discarding
			gone = true
			isGone()
		}()
		if has, err := r.take(over); !errors.Is(err, context.Canceled) || has.group != nil || !gone {
			t.Errorf("%s: %v, %v, gone %v", name, has, err, gone)
		}
	}
}

var errFull = errors.New("no room")

func newRoom(discard func(early, func())) *Room {
	return &Room{made: make(chan struct{}), gone: make(chan struct{}), discard: discard}
}

func (r *Room) ready() { r.fill(early{group: &cgroup.Group{}}, nil) }
