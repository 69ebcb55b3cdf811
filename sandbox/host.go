package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// Host starts the processes of calls on this machine. Its methods are safe for
// concurrent use.
type Host struct {
	idDir string

	mu    sync.Mutex
	z     *zygote
	old   []*zygote // worn ones, for as long as what they gave birth to lives
	users users
	slots *slots
	over  bool
}

// maxOld bounds the worn zygotes that are kept.
const maxOld = 4

var errClosed = errors.New("the host of sandboxes is closed")

// Open starts a zygote. idDir is a folder, the same for all hosts of this user, in
// which they allocate user IDs for calls.
func Open(idDir string) (*Host, error) {
	h := &Host{idDir: idDir}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.renew(); err != nil {
		return nil, err
	}
	return h, nil
}

// use returns the living zygote, and whom calls can be, until release. After a
// death, which only a stranger or the kernel can have caused, it is a new one.
func (h *Host) use() (*zygote, *slots, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.renew(); err != nil {
		return nil, nil, err
	}
	h.z.uses++
	return h.z, h.slots, nil
}

// renew starts a zygote unless one lives. The caller holds mu.
func (h *Host) renew() error {
	if h.over {
		return errClosed
	}
	if h.z != nil && !closed(h.z.pulse.lost) && !closed(h.z.gone) {
		return nil
	}
	if h.z != nil {
		h.z.close()
		h.z = nil
	}
	z, users, err := startZygote()
	if err != nil {
		return err
	}
	if err := h.users.lost(users); err != nil { // the next start tries again
		z.close()
		return err
	}
	h.z, h.users = z, users
	if h.slots == nil || h.slots.ids != users.ids {
		h.slots.close()
		h.slots = &slots{dir: h.idDir, ids: users.ids, next: os.Getpid() % firstSlots}
	}
	return nil
}

// retire has another zygote give birth from now on. The worn one stays while
// launchers of its own live: it ends them, should the host die.
func (h *Host) retire(worn *zygote) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.z != worn {
		return
	}
	h.z = nil
	h.old = append(h.old, worn)
	if len(h.old) > maxOld {
		h.old[0].close()
		h.old = h.old[1:]
	}
}

// release ends a use of a zygote; a worn one that has no other ends.
func (h *Host) release(z *zygote) {
	h.mu.Lock()
	defer h.mu.Unlock()
	z.uses--
	if at := slices.Index(h.old, z); at >= 0 && z.uses == 0 {
		z.close()
		h.old = slices.Delete(h.old, at, at+1)
	}
}

// Restart replaces the zygote, so that later processes are forked in the cgroup
// that the host is in now.
func (h *Host) Restart() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.z != nil {
		h.z.close()
		h.z = nil
	}
	return h.renew()
}

// Close ends the zygote. Running calls go on.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.z != nil {
		h.z.close()
	}
	for _, z := range h.old {
		z.close()
	}
	h.old = nil
	h.slots.close()
	return nil
}

// identity is who a call is: uid and gid as the zygote sees them, outside as
// the host does.
type identity struct {
	mapped               bool
	insideUID, insideGID int
	uid, gid, outside    int
	slot                 slot
	give                 func(slot)
}

// retire leaves the user taken as long as a launcher that may still be born
// holds its lock.
func (i identity) retire() {
	if i.slot.lock != nil {
		_ = i.slot.lock.Close()
	}
}

func (i identity) release() {
	if i.give != nil {
		i.give(i.slot)
	}
}

// who settles who a call of this plan is.
func (p *Plan) who(from *slots) (identity, error) {
	root := os.Geteuid() == 0
	switch {
	case p.user && !p.shared:
		return from.identity()
	case p.user: // the caller is root of the zygote's user namespace
		return identity{mapped: true, insideUID: toolID, insideGID: toolID, outside: os.Geteuid()}, nil
	case root || p.flags == 0:
		return identity{outside: os.Geteuid()}, nil
	}
	return identity{mapped: true, insideUID: os.Geteuid(), insideGID: os.Getegid(), outside: os.Geteuid()}, nil
}

// identity is that of a call which is a user of its own.
func (s *slots) identity() (identity, error) {
	got, err := s.take()
	if err != nil {
		return identity{}, err
	}
	ids := s.ids
	return identity{
		mapped: true, insideUID: toolID, insideGID: toolID, uid: ids.inside + got.number, gid: ids.inside + got.number,
		outside: ids.outsideUID + got.number, slot: got, give: s.give,
	}, nil
}
