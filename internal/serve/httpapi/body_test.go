package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/turn"
)

// fakeConn is a connection whose client sends a byte at each beat, and which
// knows its deadlines.
type fakeConn struct {
	*httptest.ResponseRecorder
	beat     time.Duration
	left     int
	deadline time.Time
}

func (c *fakeConn) SetReadDeadline(at time.Time) error { c.deadline = at; return nil }

func (c *fakeConn) Close() error { return nil }

func (c *fakeConn) Read(b []byte) (int, error) {
	next := time.Now().Add(c.beat)
	if !c.deadline.IsZero() && next.After(c.deadline) {
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(time.Until(next))
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	b[0] = ' '
	if c.left == 0 {
		b[0] = '1' // no object, but all of it
	}
	return 1, nil
}

// A client may take as long as it likes for a body as long as something comes,
// at every path; behind it, reading has no limit.
func TestTheLimitOfABodyIsOfSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		})
		s, err := New(Config{Turns: turn.New(turn.Config{}), Tools: catalogue{}, Token: testToken, Pages: pages})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct {
			path  string
			bytes int
			beat  time.Duration
			want  int
		}{
			{"/api/turns", 100, s.config.Stall - 1, http.StatusBadRequest},
			{"/api/turns", 2, s.config.Stall + 1, http.StatusRequestTimeout},
			{"/mcp", 100, s.config.Stall - 1, http.StatusOK},
			{"/mcp", 2, s.config.Stall + 1, http.StatusRequestTimeout},
		} {
			c := &fakeConn{ResponseRecorder: httptest.NewRecorder(), beat: one.beat, left: one.bytes}
			r := httptest.NewRequest("POST", "http://localhost:1"+one.path, c)
			r.Header.Set("Authorization", "Bearer "+testToken)
			r.Header.Set("Content-Type", "application/json")
			local := net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
			s.ServeHTTP(c, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
			if c.Code != one.want {
				t.Errorf("%s, a byte every %v: %d %s, want %d", one.path, one.beat, c.Code, c.Body, one.want)
			}
			if c.left == 0 && !c.deadline.IsZero() {
				t.Errorf("%s: the end of the body leaves a limit", one.path)
			}
		}
	})
}
