package httpapi

import (
	"net"
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// Who makes room for a connection when there are as many as may be.
func TestConnectionsMakeRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		// open are connections of an origin: "?" is one on which nobody has authenticated,
		// "i" waits for a request, "b" has one.
		open   []string
		from   string
		victim int // len(open) is the newest
	}{
		{"there is room", []string{"a?"}, "b", -1},
		{"the oldest that nobody knows", []string{"ab", "a?", "a?", "ai"}, "b", 1},
		{"of the origin that has most", []string{"b?", "ab", "ai", "ai"}, "c", 2},
		{"its own, where it has most", []string{"ai", "bi", "bi", "bb"}, "b", 1},
		{"the newest that works", []string{"ab", "ab", "ab", "bb"}, "b", 2},
		{"itself, if its origin has most", []string{"ab", "ab", "ab", "bb"}, "a", 4},
		{"not itself for being unknown", []string{"ai", "ab", "ab", "ab"}, "a", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newConnections(4, hclog.NewNullLogger())
			var all []*connection
			add := func(from string) *connection {
				near, far := net.Pipe()
				t.Cleanup(func() { _, _ = near.Close(), far.Close() })
				all = append(all, l.add(near, from))
				return all[len(all)-1]
			}
			for _, one := range c.open {
				added := add(one[:1])
				l.note(added.conn, http.StateActive)
				if one[1] != '?' {
					l.know(added)
				}
				if one[1] == 'i' {
					l.note(added.conn, http.StateIdle)
				}
			}
			add(c.from)
			for i, one := range all {
				if one.Closed() != (i == c.victim) {
					t.Errorf("connection %d: closed %t", i, one.Closed())
				}
			}
			for _, one := range all {
				l.note(one.conn, http.StateClosed)
			}
			if len(l.open) != 0 || len(l.origins) != 0 {
				t.Errorf("left: %v, %v", l.open, l.origins)
			}
		})
	}
}

func TestOriginsOfConnections(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8::1": "2001:db8::/64", "2001:db8::2": "2001:db8::/64", "::1": "::/64",
	} {
		c := addressed{at: &net.TCPAddr{IP: net.ParseIP(address), Port: 9}}
		if got := originName(c); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

type addressed struct {
	net.Conn
	at net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.at }
