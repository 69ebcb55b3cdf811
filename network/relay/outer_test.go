package relay

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/network"
)

// What has come is counted exactly, however the connection has ended, and though
// nobody has read it.
func TestBytesOfConnectionsThatHaveEnded(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{})
	for what, end := range map[string]func(*net.TCPConn){
		"in turn":    func(peer *net.TCPConn) { _, _ = io.Copy(io.Discard, peer); _ = peer.Close() },
		"by a reset": reset,
	} {
		c, peer := connected(t, s)
		o, err := newOuter(c.in, flowKey{name: what, port: 1}, time.Now(), s.ledger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(peer, "hello"); err != nil {
			t.Fatal(err)
		}
		if what == "in turn" {
			_ = o.CloseWrite()
		}
		end(peer)
		until := time.Now().Add(20 * time.Second)
		for state := uint8(0); state != unix.BPF_TCP_CLOSE; {
			_ = o.raw.Control(func(fd uintptr) {
				if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
					state = info.State
				}
			})
			if time.Now().After(until) {
				t.Fatalf("%s: state %d", what, state)
			}
		}
		o.finish("", true)
	}
	for _, f := range s.report().Flows {
		if f.ReceivedBytes != 5 || f.SentBytes != 0 {
			t.Errorf("%+v", f)
		}
	}
}
