package httpapi

import (
	"fmt"
	"io"
	"slices"
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

	streamed, whole, question := w.begin(api.TurnSpec{}), w.begin(api.TurnSpec{}), w.begin(api.TurnSpec{})
	answers := make(chan string, 3)
	ask := func(path, body string, headers ...string) {
		status, said := w.send("POST", path, body, headers...)
		answers <- fmt.Sprint(status, " ", said)
	}
	go ask("/api/turns/"+streamed+"/calls", `{"calls":[{"id":"1","tool":"work","arguments":{"say":"streamed","hold":true,"grace":true}}]}`, "Accept", eventStream)
	go ask("/api/turns/"+whole+"/calls", `{"calls":[{"id":"1","tool":"work","arguments":{"say":"whole","hold":true}}]}`)
	go ask("/api/turns/"+question+"/interactions", `{"kind":"password","prompt":"?"}`)
	held := w.fakes.await(t, "streamed", true)
	w.fakes.await(t, "whole", true)
	w.asked()
	out.Store(true)
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	if _, err := io.ReadAll(conn); err != nil {
		t.Error(err)
	}
	for range 3 { // the streamed one does not wait for its call, which needs a second abort
		said := <-answers
		kinds := kindsOf(said)
		if slices.Contains(kinds, kindResults) || len(kinds) == 0 && !strings.HasPrefix(said, "403 ") || strings.Contains(said, "CANCELLED") ||
			len(kinds) > 0 && kinds[len(kinds)-1] != kindError || !strings.Contains(said, "you may not use this daemon any more") {
			t.Errorf("answered %s", said)
		}
	}
	held.Abort(api.ReasonUser)
	w.fakes.await(t, "whole", false)
	w.fakes.await(t, "streamed", false)
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
