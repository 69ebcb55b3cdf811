package httpapi

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
)

// Who may not any more reads nothing more: a user whom the configuration has left out ends
// as a token that was revoked does.
func TestAUserWhoMayNotAnyMore(t *testing.T) {
	t.Parallel()
	var out atomic.Bool
	w := newWorld(t, func(c *Config) {
		c.Book = func() access.Book {
			if out.Load() {
				return access.Book{}
			}
			return access.Book{Admins: ownUsers()}
		}
	})
	id := w.begin(api.TurnSpec{})
	conn := w.dial("GET /api/turns/" + id + "/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	until(t, "the stream", func() bool { return w.server.streams.open() == 1 })
	out.Store(true)
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	if _, err := io.ReadAll(conn); err != nil {
		t.Error(err)
	}
}

// What is not for any path is refused as any other request.
func TestNoPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, method := range []string{"OPTIONS", "GET"} {
		conn := w.dial(method + " * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
		said, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(said), " 404 ") && !strings.Contains(string(said), " 400 ") || !strings.Contains(string(said), "nosniff") && method == "OPTIONS" {
			t.Errorf("%s: %v %s", method, err, said)
		}
	}
}
