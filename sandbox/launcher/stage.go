package main

import (
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// stage clones the trees that a launcher, as the user that it becomes, could
// not reach. They are detached: no mount of this machine changes.
func (b *birth) stage() (trees []int, step string, err error) {
	for i := range b.Stage {
		s := &b.Stage[i]
		tree, err := cloneTree(b.sources[i], s)
		if err != nil {
			return trees, wire.StepStage + s.Source, err
		}
		trees = append(trees, tree)
		if err := b.prepareTree(tree, s); err != nil {
			return trees, wire.StepMap + s.Source, err
		}
	}
	return trees, "", nil
}

// cloneTree clones what the host has opened and judged; no path is followed.
func cloneTree(source int, s *wire.Stage) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return -1, err
	}
	if s.Own {
		if err := checkOwn(&st); err != nil {
			return -1, err
		}
	}
	if st.Nlink == 0 { // what is in it would be lost
		return -1, unix.ESTALE
	}
	tree, err := openTree(source)
	if err != unix.EINVAL {
		return tree, err
	}
	own, err := ownView(&st, s.Source)
	if err != nil {
		return -1, err
	}
	defer unix.Close(own)
	return openTree(own)
}

func openTree(fd int) (int, error) {
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// ownView opens a file of the host's in the zygote's own mount namespace, which
// it has where its host is not privileged: only from there can it be cloned. It
// must be the same file, which the host holds, so that no other can have its
// numbers.
func ownView(want *unix.Stat_t, path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Dev != want.Dev || st.Ino != want.Ino) {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// checkOwn wants a folder of this user's.
func checkOwn(st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.ENOTDIR
	case int(st.Uid) != unix.Geteuid():
		return unix.EPERM
	}
	return nil
}

func (b *birth) prepareTree(tree int, s *wire.Stage) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if !s.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if s.Map {
		idMaps.Lock() // until it is used: it may be closed to make room
		defer idMaps.Unlock()
		users, err := idMap(mapping{s.MapUID, s.MapGID, b.UID, b.GID})
		if err != nil {
			return err
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users)
	}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// mapping makes files of one user appear as another's.
type mapping struct{ uid, gid, asUID, asGID int64 }

// maxIDMaps bounds the user namespaces that are kept for mappings.
const maxIDMaps = 128

var idMaps struct {
	sync.Mutex
	known map[mapping]int
}

// idMap returns a user namespace that says m, for mount_setattr(2). It stays
// open for the next call of the same slot. The caller holds idMaps.
func idMap(m mapping) (int, error) {
	if fd, ok := idMaps.known[m]; ok {
		return fd, nil
	}
	fd, err := newIDMap(m)
	if err != nil {
		return -1, err
	}
	if idMaps.known == nil || len(idMaps.known) >= maxIDMaps {
		for _, fd := range idMaps.known {
			unix.Close(fd)
		}
		idMaps.known = map[mapping]int{}
	}
	idMaps.known[m] = fd
	return fd, nil
}

// newIDMap makes a user namespace with a process that never runs: it stops
// when it is traced into its exec.
func newIDMap(m mapping) (int, error) {
	pid, err := syscall.ForkExec(imagePath, []string{"idmap"}, &syscall.ProcAttr{Dir: "/", Sys: &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(m.uid), HostID: int(m.asUID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(m.gid), HostID: int(m.asGID), Size: 1}},
		Ptrace:      true,
	}})
	tellReaper()
	if err != nil {
		return -1, err
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = unix.Kill(pid, unix.SIGKILL)
	return fd, err
}
