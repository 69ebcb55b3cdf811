package process

import (
	"context"
	"errors"
	"testing"

	"github.com/toolhost/toolhost/cgroup"
)

// What was made early is taken once, or given up: a start that comes later has none.
func TestRoom(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		do        func(*room)
		ctx       context.Context
		want      error
		discarded int
	}{
		"taken before":    {func(r *room) { r.ready(); _, _ = r.take(t.Context()) }, t.Context(), errGivenUp, 0},
		"left before":     {func(r *room) { r.ready(); r.Leave() }, t.Context(), errGivenUp, 1},
		"left meanwhile":  {func(r *room) { r.Leave(); r.ready() }, t.Context(), errGivenUp, 1},
		"could not be":    {func(r *room) { r.make(func() (early, error) { return early{}, errFull }) }, t.Context(), errFull, 0},
		"there to be had": {func(r *room) { r.ready() }, t.Context(), nil, 0},
		"ended meanwhile": {func(*room) {}, over, context.Canceled, 1},
	} {
		discarded, stopped := 0, false
		r := &room{made: make(chan struct{}), stop: func() { stopped = true }, discard: func(early) { discarded++ }}
		c.do(r)
		has, err := r.take(c.ctx)
		if !errors.Is(err, c.want) || (has.group == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, want %v", name, has, err, c.want)
		}
		if c.ctx == over {
			r.ready() // nobody waits for it any more
		}
		if r.Leave(); discarded != c.discarded || !stopped {
			t.Errorf("%s: discarded %d times, want %d; stopped %v", name, discarded, c.discarded, stopped)
		}
	}
}

var errFull = errors.New("no room")

func (r *room) ready() {
	r.make(func() (early, error) { return early{group: &cgroup.Group{}}, nil })
}
