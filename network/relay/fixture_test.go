package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/network"
)

// told is a host that only notes what it is told.
type told struct {
	mu            sync.Mutex
	limits, notes []string
}

func (t *told) asked(a Ask) { t.note("asked " + a.Name) }

func (t *told) left(a Ask) { t.note("left " + a.Name) }

func (t *told) note(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, what)
}

func (t *told) passed(_, limit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limits = append(t.limits, limit)
}

// newSession opens a session whose sockets are on this machine's loopback.
func newSession(t testing.TB, w *hostNetwork, limits network.Limits, grants ...network.Grant) (s *session, dns map[string]string) {
	t.Helper()
	return newSessionAt(t, listenAt(t, "127.0.0.1:0"), w, limits, grants...)
}

func listenAt(t testing.TB, at string) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newSessionAt is newSession with the socket of its grants, which becomes the session's.
func newSessionAt(t testing.TB, plain *net.TCPListener, w *hostNetwork, limits network.Limits, grants ...network.Grant) (s *session, dns map[string]string) {
	t.Helper()
	files := sockets(t, plain)
	dns = map[string]string{"udp": addrOfFile(t, files[2]), "tcp": addrOfFile(t, files[3])}
	s, err := openSession(Session{ID: t.Name(), Grants: grants, Limits: limits}, files, w, &told{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(false) })
	return s, dns
}

// sockets are the files of a session, whose grants have that socket.
func sockets(t testing.TB, plain *net.TCPListener) (files []*os.File) {
	t.Helper()
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/proc/self/net/snmp", "/proc/self/net/snmp6"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for _, socket := range []interface {
		File() (*os.File, error)
		Close() error
	}{udp, listenAt(t, "127.0.0.1:0"), plain} {
		file, err := socket.File()
		if err != nil {
			t.Fatal(err)
		}
		_ = socket.Close()
		files = append(files, file)
	}
	return files
}

// addrOfFile is where a socket is bound.
func addrOfFile(t testing.TB, file *os.File) string {
	t.Helper()
	at, err := unix.Getsockname(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(at.(*unix.SockaddrInet4).Addr), uint16(at.(*unix.SockaddrInet4).Port)).String()
}

// deaf is a network without a resolver: a lookup fails at once.
func deaf() *hostNetwork {
	return &hostNetwork{resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no packet must leave")
	}}}
}

// standsFor has an address of this machine stand for a name.
func (s *session) standsFor(addr netip.Addr, name string) {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	s.names.byAddr[addr] = name
}

// leadTo has a name lead to addresses, without a lookup.
func (s *session) leadTo(name string, addrs ...netip.Addr) {
	done := make(chan struct{})
	close(done)
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	s.names.known[name] = &lookup{done: done, addrs: addrs, at: time.Now().Add(time.Hour)}
}

// connected is a connection that a tool has made, and the tool's side of it.
func connected(t testing.TB, s *session) (*connection, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tool, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{session: s, in: in.(*net.TCPConn), begun: time.Now()}
	c.active.Store(time.Now().UnixNano())
	t.Cleanup(func() { _, _ = in.Close(), tool.Close() })
	_ = tool.SetDeadline(time.Now().Add(20 * time.Second))
	return c, tool.(*net.TCPConn)
}

// granted are a name and the address that it leads to, on one port.
func granted(name string, at netip.AddrPort) []network.Grant {
	return []network.Grant{{Host: name, Ports: []uint16{at.Port()}}, {Host: at.Addr().String(), Ports: []uint16{at.Port()}}}
}

func addrOf(t testing.TB, l net.Listener) netip.AddrPort {
	t.Helper()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func port(at netip.AddrPort) string { return strconv.Itoa(int(at.Port())) }
