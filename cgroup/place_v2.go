package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// unified is the cgroup2 mount that we reach directories through.
type unified struct {
	mounts []mount
	mnt    *dir // the detached mount of our own, nil where the host has one
}

// open returns the directory of a cgroup path.
func (u *unified) open(p string) (*dir, error) {
	if u.mnt == nil {
		return openVerified(u.mounts, isV2, p)
	}
	if strings.HasPrefix(p, "/..") {
		return nil, pathError("open", p, unix.EXDEV)
	}
	return u.mnt.sub("." + strings.TrimSuffix(p, "/"))
}

func (u *unified) close() { u.mnt.close() }

func isV2(m mount) bool { return m.fstype == "cgroup2" }

// openBaseV2 finds or makes the directory to work below, and says whether its
// processes may be moved away so that controllers can be enabled.
func openBaseV2(ctx context.Context, u *unified, o Options, limitsInV1 bool) (*dir, placement, error) {
	own, err := readMembership()
	if err != nil {
		return nil, 0, err
	}
	switch {
	case o.Parent != "":
		base, err := u.open(o.Parent)
		if err != nil {
			return nil, 0, unavailableParent("cgroup2", o.Parent, err)
		}
		return base, parentPlacement(base, o.Parent, own.v2), nil
	case own.v2 == "":
		return nil, 0, &UnavailableError{"cgroup2", "/proc/self/cgroup", "use a kernel with cgroup2 (Linux 5.14 or newer)", nil}
	case limitsInV1:
		// Without controllers cgroup2 has no rule about inner processes:
		// a child of our own cgroup will do, and needs nobody's consent.
		base, err := u.open(own.v2)
		if err != nil {
			return nil, 0, unavailableV2(own.v2, err)
		}
		return base, undisturbed(base, own.v2), nil
	}
	return findBaseV2(ctx, u, o, own.v2)
}

// parentPlacement is for a base that the admin named. Its processes are moved
// only if we are one of them.
func parentPlacement(base *dir, parent, own string) placement {
	if gatherFacts(base, parent).trueRoot {
		return placeRoot
	}
	if path.Clean(parent) == own {
		return placeOwnSelf
	}
	return placeParent
}

func undisturbed(base *dir, own string) placement {
	if gatherFacts(base, own).trueRoot {
		return placeRoot
	}
	return placeParent
}

func findBaseV2(ctx context.Context, u *unified, o Options, own string) (*dir, placement, error) {
	base, err := u.open(own)
	if err != nil {
		return nil, 0, unavailableV2(own, err)
	}
	facts := gatherFacts(base, own)
	facts.parentDelegated = parentDelegated(u, own)
	switch p := decidePlace(facts); p {
	case placeOwn, placeOwnSelf, placeRoot:
		return base, p, nil
	case placeParent:
		base.close()
		base, err := u.open(path.Dir(own))
		return base, p, err
	case placeAskSystem, placeAskUser:
		if isUnitOfOurs(ctx, p, own) {
			return base, placeOwn, nil
		}
		base.close()
		return askForBase(ctx, u, o, p)
	}
	base.close()
	return nil, 0, unavailableV2(own, unix.EACCES)
}

func askForBase(ctx context.Context, u *unified, o Options, p placement) (*dir, placement, error) {
	addr, err := busAddress(p, os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	unit := scopeName()
	if err := startScope(ctx, addr, unit, os.Getpid()); err != nil {
		return nil, 0, &UnavailableError{"systemd scope", unit, PlaceRemedy(), err}
	}
	own, err := readMembership()
	if err != nil {
		return nil, 0, err
	}
	if !isOwnScope(own.v2, unit) {
		return nil, 0, &UnavailableError{"systemd scope", unit, PlaceRemedy(), fmt.Errorf("systemd left us in %s", own.v2)}
	}
	o.Logger.Debug("systemd made a delegated scope", "unit", unit)
	base, err := u.open(own.v2)
	if err != nil {
		return nil, 0, unavailableV2(own.v2, err)
	}
	return base, placeOwn, nil
}

func unavailableV2(p string, err error) error {
	return &UnavailableError{"cgroup2 directory", p, placeRemedy(err), err}
}

func gatherFacts(d *dir, own string) placeFacts {
	return placeFacts{
		own:       own,
		trueRoot:  !d.exists("cgroup.events"), // every cgroup but the root has it
		delegated: isDelegated(d),
		writable:  d.writable("."), // the rest is tried: an errno says more than access(2)
		systemd:   hasSystemd(),
		uid:       os.Geteuid(),
	}
}

func (d *dir) exists(name string) bool { return unix.Faccessat(d.fd, name, unix.F_OK, 0) == nil }

func (d *dir) writable(name string) bool {
	return unix.Faccessat(d.fd, name, unix.W_OK, unix.AT_EACCESS) == nil
}

// isDelegated reads the mark that systemd leaves on delegated cgroups:
// user.delegate since v251, trusted.delegate (root only) before.
// Source: https://systemd.io/CGROUP_DELEGATION/.
func isDelegated(d *dir) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var v [2]byte
		if n, err := unix.Fgetxattr(d.fd, name, v[:]); err == nil && string(v[:n]) == "1" {
			return true
		}
	}
	return false
}

func parentDelegated(u *unified, own string) bool {
	if !leafName().MatchString(path.Base(own)) {
		return false
	}
	parent, err := u.open(path.Dir(own))
	if err != nil {
		return false
	}
	defer parent.close()
	return isDelegated(parent)
}

// openUnified takes the host's cgroup2 mount if one shows our own cgroup. Else
// it attaches one to nothing but a file descriptor, which needs CAP_SYS_ADMIN
// and changes no mount table; its root is that of our cgroup namespace.
func openUnified(mounts []mount, own string, ignoreHosts bool) (*unified, error) {
	for _, m := range mounts {
		if _, shown := m.relative(own); isV2(m) && shown && !ignoreHosts {
			return &unified{mounts: mounts}, nil
		}
	}
	mnt, err := detachedCgroup2()
	if err != nil {
		return nil, &UnavailableError{"cgroup2 mount", "none in /proc/self/mountinfo shows our cgroup", "run it as root: sudo toolhost ..., or mount cgroup2 (as root: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified)", err}
	}
	return &unified{mnt: mnt}, nil
}

// detachedCgroup2 makes a mount without a place. Source: fsopen(2), fsmount(2).
func detachedCgroup2() (*dir, error) {
	fsfd, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fsfd)
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	mnt := &dir{fd, "cgroup2:"}
	root, err := mnt.sub(".") // fsmount's own fd is O_PATH
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	root.path = mnt.path
	mnt.close()
	return root, nil
}
