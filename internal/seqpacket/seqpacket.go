// Package seqpacket makes and reads sockets of type SOCK_SEQPACKET (unix(7)).
package seqpacket

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// Pair makes a pair of sockets whose second end is for another process. name is that of
// their files; buffer is how many bytes each may hold each way, 0 what the kernel gives.
func Pair(name string, buffer int) (*net.UnixConn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		for _, direction := range []int{syscall.SO_SNDBUF, syscall.SO_RCVBUF} {
			if buffer > 0 {
				_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, direction, buffer)
			}
		}
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name)
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// Read is ReadMsgUnix that loses no message of an end which has gone. Where that had not read
// all that came to it, the kernel says so (ECONNRESET), once and before what it had sent.
func Read(c *net.UnixConn, buf, oob []byte) (n, oobn, flags int, err error) {
	n, oobn, flags, _, err = c.ReadMsgUnix(buf, oob)
	if errors.Is(err, syscall.ECONNRESET) {
		n, oobn, flags, _, err = c.ReadMsgUnix(buf, oob)
	}
	return n, oobn, flags, err
}
