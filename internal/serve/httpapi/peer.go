package httpapi

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"unsafe" // for an option that package syscall does not know

	"github.com/toolhost/toolhost/internal/access"
)

// peer is the user at the other end of a unix socket (SO_PEERCRED, unix(7)).
type peer struct {
	uid    uint32
	groups []uint32 // its own first
	err    error
}

type (
	peerKey       struct{}
	connectionKey struct{}
	callerKey     struct{}
)

// Caller is who has sent a request that one of Config.Mounts is to answer.
type Caller struct {
	// Identity is who has authenticated.
	access.Identity
	// Connection is equal for all requests of one connection, and for no others;
	// nil if it is not known. Closed reports whether it has ended.
	Connection interface{ Closed() bool }
	// Decoding waits until a body of so many bytes may be decoded: large ones leave
	// processors to other requests. done must be called after it.
	Decoding func(ctx context.Context, bytes int) (done func(), err error)
}

// CallerOf tells who has sent a request, by its context.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// withCaller returns a context whose CallerOf is who.
func withCaller(ctx context.Context, who caller, i *intake) context.Context {
	c := Caller{Identity: who.Identity, Decoding: i.turn}
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.Connection = one
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// withPeer notes the connection, and who has connected. Connections of other
// kinds than unix sockets have no peer.
func (l *connections) withPeer(ctx context.Context, c net.Conn) context.Context {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return context.WithValue(ctx, connectionKey{}, l.add(c, originName(c)))
	}
	p := readPeer(conn)
	from := originName(c)
	if p.err == nil {
		from = fmt.Sprintf("user %d", p.uid)
	}
	ctx = context.WithValue(ctx, connectionKey{}, l.add(c, from))
	return context.WithValue(ctx, peerKey{}, p)
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
		if cred, p.err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); p.err == nil {
			p.groups, p.err = peerGroups(int(fd))
		}
	}); err != nil {
		return peer{err: err}
	}
	if p.err == nil {
		p.uid, p.groups = cred.Uid, append([]uint32{cred.Gid}, p.groups...)
	}
	return p
}

const (
	soPeerGroups = 59 // SO_PEERGROUPS, Linux 4.13
	maxGroups    = 65536
)

// peerGroups are the supplementary groups that the peer had when it connected.
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == syscall.ERANGE && len(groups) < maxGroups:
			groups = make([]uint32, max(int(size/4), 2*len(groups)))
		default:
			return nil, fmt.Errorf("cannot find out its groups: %w", errno)
		}
	}
}
