package main

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// connect makes a connection that the host may not: the zygote is root of the
// user namespace that its calls' users come from.
func connect(name string, fds []int) {
	defer closeAll(fds)
	if len(fds) != 2 {
		return
	}
	answer, dir := fds[0], fds[1]
	conn, err := connectBeneath(dir, name)
	if err != nil {
		refuse(answer, "connect", err)
		return
	}
	defer unix.Close(conn)
	_ = unix.Sendmsg(answer, []byte{wire.KindReady}, unix.UnixRights(conn), nil, unix.MSG_NOSIGNAL)
}

// connectBeneath follows no link, and resolves the name exactly once.
func connectBeneath(dir int, name string) (int, error) {
	socket, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(socket)
	var st unix.Stat_t
	if err := unix.Fstat(socket, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return -1, unix.ENOTSOCK
	}
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(conn, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(socket)}); err != nil {
		_ = unix.Close(conn)
		return -1, err
	}
	return conn, nil
}
