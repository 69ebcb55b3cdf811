package cgroup

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/lazy"
)

// supervisorLeaf begins the names of where a base's own processes go: cgroup2
// forbids processes beside children with controllers ("no internal processes").
const supervisorLeaf = "toolhost-supervisor-"

var leafName = lazy.Regexp(`^toolhost-supervisor-[0-9a-f]{16}$`)

// fillLeaf has fill move processes to a leaf that is always new: one that was
// killed before would doom our children (see Root.Refresh). Until somebody is
// in it the leaf is locked, or a sweep would take it for a dead toolhost's;
// whom a sweep has forestalled tries again.
func fillLeaf(base *dir, fill func(leaf *dir) error) error {
	var err error
	for range maxNameTries {
		if err = fillNew(base, supervisorLeaf+randomHex(), fill); !forestalled(err) {
			return err
		}
	}
	return err
}

func fillNew(base *dir, name string, fill func(leaf *dir) error) error {
	if err := base.mkdir(name, 0o711); err != nil { // others can't lock it
		return err
	}
	leaf, err := lockedSub(base, name)
	if err == nil {
		err = fill(leaf)
		leaf.close()
	}
	if err != nil {
		_ = base.rmdir(name) // fails if one has been moved, or it is gone
	}
	return err
}

// forestalled tells that the leaf was removed, or is about to be.
func forestalled(err error) bool {
	return gone(err) || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.ESTALE)
}

// sweepEmptyLeaf removes a leaf that all have left. Nobody is killed: who is in
// it is alive.
func sweepEmptyLeaf(base *dir, name string) {
	leaf, err := lockedSub(base, name)
	if err != nil {
		return // somebody is about to be moved there, or it isn't ours
	}
	defer leaf.close()
	if ownedByUs(leaf) {
		_ = base.rmdir(name) // fails while anyone is in it
	}
}
