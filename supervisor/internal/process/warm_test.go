package process

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/cgroup"
)

// What was made early is taken once, or given up: a start that comes later has none.
func TestWarm(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(*Warm)
		want      error
		discarded int
	}{
		"taken before":    {func(w *Warm) { w.ready(); _, _ = w.take(t.Context()) }, errGivenUp, 0},
		"left before":     {func(w *Warm) { w.ready(); w.Leave() }, errGivenUp, 1},
		"left meanwhile":  {func(w *Warm) { w.Leave(); w.ready() }, errGivenUp, 1},
		"could not be":    {func(w *Warm) { w.fill(early{}, errFull) }, errFull, 0},
		"there to be had": {func(w *Warm) { w.ready() }, nil, 0},
	} {
		discarded, stopped := 0, false
		w := newWarm(func(_ early, gone func()) { discarded++; gone() })
		w.stop = func() { stopped = true }
		c.do(w)
		has, err := w.take(t.Context())
		if !errors.Is(err, c.want) || (has.group == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, want %v", name, has, err, c.want)
		}
		if <-w.Leave(); discarded != c.discarded || !stopped {
			t.Errorf("%s: discarded %d times, want %d; stopped %v", name, discarded, c.discarded, stopped)
		}
	}
}

// A call that ends while its process is still being made waits until that is made and gone.
func TestWarmOfACallThatEnds(t *testing.T) {
	for name, err := range map[string]error{"made": nil, "could not be": errFull} {
		over, end := context.WithCancel(t.Context())
		end()
		stopped, discarding, gone := make(chan struct{}), make(chan func(), 1), false
		w := newWarm(func(_ early, gone func()) { discarding <- gone })
		w.stop = sync.OnceFunc(func() { close(stopped) })
		go func() {
			<-stopped
			if err != nil {
				gone = true
				w.fill(early{}, err)
				return
			}
			w.ready()
			isGone := <-discarding
			gone = true
			isGone()
		}()
		if has, err := w.take(over); !errors.Is(err, context.Canceled) || has.group != nil || !gone {
			t.Errorf("%s: %v, %v, gone %v", name, has, err, gone)
		}
	}
}

var errFull = errors.New("no room")

func newWarm(discard func(early, func())) *Warm {
	return &Warm{made: make(chan struct{}), gone: make(chan struct{}), discard: discard}
}

func (w *Warm) ready() { w.fill(early{group: &cgroup.Group{}}, nil) }
