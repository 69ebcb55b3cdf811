package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// resolve keeps a name within its folder: no links, no mounts.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// errChanged says that a process still writes to the workspace.
var errChanged = errors.New("changed meanwhile")

// openBeneath opens what has this name in dir, and never blocks.
func openBeneath(dir *os.File, name string, flags uint64) (int, error) {
	defer runtime.KeepAlive(dir)
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
			Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: resolve,
		})
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSYS):
			return -1, fmt.Errorf("openat2: %w; it needs Linux 5.6 and a seccomp filter that allows it", err)
		}
		return fd, err
	}
}

// look finds out what has this name, without opening it: to open a device is
// to use it.
func look(dir *os.File, name string) (*unix.Stat_t, error) {
	fd, err := openBeneath(dir, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return &st, unix.Fstat(fd, &st)
}

func openFolder(dir *os.File, name string) (*os.File, error) {
	fd, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openFile opens the regular file that was looked at. O_NONBLOCK is for a FIFO
// that came in its place.
func openFile(dir *os.File, name string, seen *unix.Stat_t) (*os.File, error) {
	fd, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if st.Dev != seen.Dev || st.Ino != seen.Ino || st.Mode != seen.Mode || st.Size != seen.Size {
		return nil, errors.Join(errChanged, file.Close())
	}
	return file, nil
}

// types are those that Go names; others are irregular.
var types = map[uint32]fs.FileMode{
	unix.S_IFREG:  0,
	unix.S_IFDIR:  fs.ModeDir,
	unix.S_IFLNK:  fs.ModeSymlink,
	unix.S_IFIFO:  fs.ModeNamedPipe,
	unix.S_IFSOCK: fs.ModeSocket,
	unix.S_IFBLK:  fs.ModeDevice,
	unix.S_IFCHR:  fs.ModeDevice | fs.ModeCharDevice,
}

func mode(st *unix.Stat_t) fs.FileMode {
	typ, ok := types[st.Mode&unix.S_IFMT]
	if !ok {
		typ = fs.ModeIrregular
	}
	m := typ | fs.FileMode(st.Mode&0o777)
	for bit, goBit := range map[uint32]fs.FileMode{
		unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky,
	} {
		if st.Mode&bit != 0 {
			m |= goBit
		}
	}
	return m
}
