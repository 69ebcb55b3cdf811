package sandbox

import (
	"errors"
	"os"
	"sync"
)

// Host starts calls' processes on this machine. Its methods may be used from
// any goroutine.
type Host struct {
	idDir string

	mu    sync.Mutex
	z     *zygote
	users users
	slots *slots
	over  bool
}

var errClosed = errors.New("the host of sandboxes is closed")

// Open starts what gives birth to launchers. idDir is a folder, the same for
// all hosts of this user, in which they agree on who has which user for calls.
func Open(idDir string) (*Host, error) {
	h := &Host{idDir: idDir}
	if _, err := h.zygote(); err != nil {
		return nil, err
	}
	return h, nil
}

// zygote returns the living one; after a death, which only a stranger or the
// kernel can have caused, a new one.
func (h *Host) zygote() (*zygote, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, errClosed
	}
	if h.z != nil && !closed(h.z.gone) {
		return h.z, nil
	}
	if h.z != nil {
		h.z.close()
	}
	z, users, err := startZygote()
	if err != nil {
		return nil, err
	}
	h.z, h.users = z, users
	if h.slots == nil || h.slots.ids != users.ids {
		h.slots = &slots{dir: h.idDir, ids: users.ids}
	}
	return z, nil
}

// Restart replaces the zygote: what it gives birth to is born in the cgroup
// that the host is in now.
func (h *Host) Restart() error {
	h.mu.Lock()
	if h.z != nil {
		h.z.close()
	}
	h.mu.Unlock()
	_, err := h.zygote()
	return err
}

// Close ends the zygote. Calls that run are not touched.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.z != nil {
		h.z.close()
	}
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

// user settles who a call of this plan is.
func (h *Host) user(p *Plan) (identity, error) {
	root := os.Geteuid() == 0
	switch {
	case p.user && !p.shared:
		return h.ownUser()
	case p.user: // the caller is root of the zygote's user namespace
		return identity{mapped: true, insideUID: toolID, insideGID: toolID, outside: os.Geteuid()}, nil
	case root || p.flags == 0:
		return identity{outside: os.Geteuid()}, nil
	}
	return identity{mapped: true, insideUID: os.Geteuid(), insideGID: os.Getegid(), outside: os.Geteuid()}, nil
}

func (h *Host) ownUser() (identity, error) {
	got, err := h.slots.take()
	if err != nil {
		return identity{}, err
	}
	ids := h.slots.ids
	return identity{
		mapped: true, insideUID: toolID, insideGID: toolID, uid: ids.inside + got.number, gid: ids.inside + got.number,
		outside: ids.outsideUID + got.number, slot: got, give: h.slots.give,
	}, nil
}
