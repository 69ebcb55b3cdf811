package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// connectTimeout is how long a tool may say nothing to a connection; a Describe has
// 10 s.
const connectTimeout = 7 * time.Second

// dial connects to the tool and checks who is there.
func dial(ctx context.Context, child *Child, socket string) (*net.UnixConn, error) {
	conn, err := connect(ctx, child, socket)
	if err != nil {
		return nil, &HandshakeError{Ended: true, Reason: fmt.Sprintf("cannot connect to the tool's socket %s: %v; listen on it before the handshake line is printed, as plugin.Serve does", socket, err)}
	}
	if err := checkPeer(conn, child.PeerUID); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func connect(ctx context.Context, child *Child, socket string) (*net.UnixConn, error) {
	if child.Dial != nil {
		return child.Dial(ctx, socket)
	}
	return connectBeneath(ctx, int(child.SocketDir.Fd()), socket)
}

// connectBeneath connects to the socket `name` in the folder dir, following no
// link, by way of /proc so that the name is resolved exactly once.
func connectBeneath(ctx context.Context, dir int, name string) (*net.UnixConn, error) {
	socket, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	var st unix.Stat_t
	if err := unix.Fstat(socket, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%q is not a socket", name)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", socket))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return conn.(*net.UnixConn), nil
}

// checkPeer refuses a socket that someone else listens on. SO_PEERCRED gives
// the pid of the process that called listen, so only the uid counts.
func checkPeer(conn *net.UnixConn, want uint32) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if credErr != nil {
		return fmt.Errorf("cannot read the peer's credentials: %w", credErr)
	}
	if cred.Uid != want {
		return &HandshakeError{Reason: fmt.Sprintf("the tool's socket belongs to uid %d, not %d", cred.Uid, want)}
	}
	return nil
}
