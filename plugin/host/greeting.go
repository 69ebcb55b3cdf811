package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// greetedConn is a connection that remembers how the other side has begun, so
// that a tool which speaks no gRPC can be told so.
type greetedConn struct {
	net.Conn
	first  [maxGreetingBytes]byte // of what came, in order; written by the one reader
	length atomic.Int32           // how many of them
	closed atomic.Bool            // by the other side
}

const (
	maxGreetingBytes = 64
	// An HTTP/2 server begins with a SETTINGS frame (RFC 9113, 3.4): three bytes of
	// length, one of type, five more.
	frameHeaderBytes = 9
	settingsFrame    = 4
)

func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if have := int(c.length.Load()); have < maxGreetingBytes && n > 0 {
		c.length.Store(int32(have + copy(c.first[have:], p[:n])))
	}
	c.note(err)
	return n, err
}

func (c *greetedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.note(err)
	return n, err
}

func (c *greetedConn) note(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		c.closed.Store(true)
	}
}

// complaint says how what was heard is not gRPC; empty if it may be, or if the
// connection was closed before anything came.
func (c *greetedConn) complaint() string {
	heard := c.first[:c.length.Load()]
	switch {
	case len(heard) >= frameHeaderBytes && heard[3] == settingsFrame:
		return ""
	case len(heard) > 0:
		return fmt.Sprintf("answered with %q", excerpt(string(heard)))
	case c.closed.Load():
		return ""
	}
	return "answered nothing within " + connectTimeout.String()
}

// SyscallConn is for writes that do not wait.
func (c *greetedConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}
