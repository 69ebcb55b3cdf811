package host

import (
	"fmt"
	"net"
	"sync/atomic"
)

// greetedConn is a connection that remembers how the other side has begun, so
// that a tool which speaks no gRPC can be told so.
type greetedConn struct {
	*net.UnixConn
	first  [maxGreetingBytes]byte // of what came, in order; written by the one reader
	length atomic.Int32           // how many of them
}

const (
	maxGreetingBytes = 64
	// An HTTP/2 server begins with a SETTINGS frame (RFC 9113, 3.4): three bytes of
	// length, one of type, five more.
	frameHeaderBytes = 9
	settingsFrame    = 4
)

func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.UnixConn.Read(p)
	if have := int(c.length.Load()); have < maxGreetingBytes && n > 0 {
		c.length.Store(int32(have + copy(c.first[have:], p[:n])))
	}
	return n, err
}

// complaint says how what was heard is not gRPC; empty if it may be. silent says
// that the connection was given up for that nothing was heard.
func (c *greetedConn) complaint(silent bool) string {
	heard := c.first[:c.length.Load()]
	switch {
	case len(heard) >= frameHeaderBytes && heard[3] == settingsFrame:
		return ""
	case len(heard) > 0:
		return fmt.Sprintf("answered with %q", excerpt(string(heard)))
	case silent:
		return "answered nothing within " + connectTimeout.String()
	}
	return ""
}
