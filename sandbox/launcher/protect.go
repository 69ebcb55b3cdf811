package main

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// protect covers, or makes read-only, what the host has found at a path below a
// granted folder. Another call may have moved it meanwhile: then nothing starts.
func (b *builder) protect(m *wire.Mount) {
	at, err := b.find(m)
	must("protect "+m.Target, err)
	defer unix.Close(at)
	tree, err := b.shown(m, at)
	must("protect "+m.Target, err)
	defer unix.Close(tree)
	must("protect "+m.Target, restrict(tree, m))
	must("protect "+m.Target, unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// find opens the mount's target, makes nothing and follows nothing.
func (b *builder) find(m *wire.Mount) (int, error) {
	fd, err := unix.Openat2(b.root, strings.TrimPrefix(m.Target, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (int64(st.Dev) != m.OnDevice || int64(st.Ino) != m.OnInode) {
		err = unix.ESTALE
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// shown is what is seen at the place from now on, not mounted yet.
func (b *builder) shown(m *wire.Mount, at int) (int, error) {
	const clone = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, err
	}
	switch {
	case m.Kind == wire.MountFixed:
		return unix.OpenTree(at, "", clone|unix.AT_EMPTY_PATH)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return emptyFolder()
	}
	return unix.OpenTree(b.root, emptyFile[1:], clone|unix.AT_SYMLINK_NOFOLLOW)
}

// emptyFolder is a file system of its own: a folder that was removed could not be
// listed.
func emptyFolder() (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"size", "4k"}, {"nr_inodes", "2"}, {"mode", "0555"}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}
