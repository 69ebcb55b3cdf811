package prepare

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/cgroup"
)

// A group is taken once, or given up: a start that comes later has none.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(*Room)
		want      error
		discarded int
	}{
		"taken before":    {func(r *Room) { r.ready(); _, _ = r.Take() }, errGivenUp, 0},
		"left before":     {func(r *Room) { r.ready(); r.Leave() }, errGivenUp, 1},
		"left meanwhile":  {func(r *Room) { r.Leave(); r.ready() }, errGivenUp, 1},
		"could not be":    {func(r *Room) { r.Make(func() (*cgroup.Group, error) { return nil, errFull }) }, errFull, 0},
		"there to be had": {func(r *Room) { r.ready() }, nil, 0},
	} {
		discarded := 0
		r := NewRoom(func(*cgroup.Group) { discarded++ })
		c.do(r)
		group, err := r.Take()
		if !errors.Is(err, c.want) || (group == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v, want %v", name, group, err, c.want)
		}
		if r.Leave(); discarded != c.discarded {
			t.Errorf("%s: discarded %d times, want %d", name, discarded, c.discarded)
		}
	}
}

var errFull = errors.New("no room")

func (r *Room) ready() {
	r.Make(func() (*cgroup.Group, error) { return &cgroup.Group{}, nil })
}
