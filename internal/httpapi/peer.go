package httpapi

import (
	"context"
	"net"
	"strconv"
	"syscall"
)

// peer is the user at the other end of a unix socket (SO_PEERCRED, unix(7)).
type peer struct {
	uid uint32
	err error
}

type peerKey struct{}

// withPeer notes who has connected. Connections of other kinds have no peer.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, readPeer(conn))
}

func peerOf(ctx context.Context) (peer, bool) {
	p, ok := ctx.Value(peerKey{}).(peer)
	return p, ok
}

func readPeer(conn *net.UnixConn) (p peer) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	var cred *syscall.Ucred
	if err := raw.Control(func(fd uintptr) {
		cred, p.err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return peer{err: err}
	}
	if p.err == nil {
		p.uid = cred.Uid
	}
	return p
}

func uitoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
