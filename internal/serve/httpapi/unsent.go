package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"unsafe" // for an ioctl that package syscall does not wrap
)

// unsent returns how much of what was written to a connection its client has not taken yet
// (SIOCOUTQ of unix(7) and tcp(7), which is TIOCOUTQ); -1 if unknown.
func unsent(c net.Conn) int {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1
	}
	left := int32(-1)
	_ = raw.Control(func(fd uintptr) { // what fails leaves -1
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&left)))
	})
	return int(left)
}

// connOf is the request's connection; nil if it is not known.
func connOf(ctx context.Context) net.Conn {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return one.conn
	}
	return nil
}
