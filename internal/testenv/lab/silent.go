package lab

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Silent is a port of an IPv4 address of the machine at which nothing is answered: the
// one connection that waits there fills the queue, and the kernel drops what comes then.
func Silent(t testing.TB, addr string) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	bound := &unix.SockaddrInet4{Addr: netip.MustParseAddr(addr).As4()}
	if err := errors.Join(unix.Bind(fd, bound), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(netip.AddrFrom4(bound.Addr), uint16(own.(*unix.SockaddrInet4).Port))
	waits, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = waits.Close() })
	return at
}
