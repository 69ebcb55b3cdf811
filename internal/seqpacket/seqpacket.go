// Package seqpacket reads from sockets of type SOCK_SEQPACKET (unix(7)).
package seqpacket

import (
	"errors"
	"net"
	"syscall"
)

// Read is ReadMsgUnix that loses no message of an end which has gone. Where that had not read
// all that came to it, the kernel says so (ECONNRESET), once and before what it had sent.
func Read(c *net.UnixConn, buf, oob []byte) (n, oobn, flags int, err error) {
	n, oobn, flags, _, err = c.ReadMsgUnix(buf, oob)
	if errors.Is(err, syscall.ECONNRESET) {
		n, oobn, flags, _, err = c.ReadMsgUnix(buf, oob)
	}
	return n, oobn, flags, err
}
