package prepare

import (
	"errors"
	"sync"

	"github.com/toolhost/toolhost/cgroup"
)

// Room is the group of a call's processes, made before it is known whether the call starts.
// Its methods may be called from any goroutine.
type Room struct {
	discard func(*cgroup.Group)
	made    chan struct{} // closed once group or err is there

	mu    sync.Mutex
	group *cgroup.Group // until it is taken or given up
	err   error
	left  bool
}

// NewRoom is one that discard removes if it is given up.
func NewRoom(discard func(*cgroup.Group)) *Room {
	return &Room{discard: discard, made: make(chan struct{})}
}

var errGivenUp = errors.New("the call was given up before its processes were started")

// Make makes the group, once.
func (r *Room) Make(group func() (*cgroup.Group, error)) {
	made, err := group()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.group, r.err = made, err
	close(r.made)
	r.drop()
}

// Take waits for the group, which is the caller's then. One that was given up is not to be
// had any more.
func (r *Room) Take() (*cgroup.Group, error) {
	<-r.made
	r.mu.Lock()
	defer r.mu.Unlock()
	group := r.group
	r.group = nil
	if group == nil && r.err == nil {
		return nil, errGivenUp
	}
	return group, r.err
}

// Leave gives up a group that nobody has taken, without a wait. r may be nil.
func (r *Room) Leave() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.drop()
}

// drop is called while mu is held.
func (r *Room) drop() {
	if r.left && r.group != nil {
		r.discard(r.group)
		r.group = nil
	}
}
