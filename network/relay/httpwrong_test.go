package relay

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/network"
)

// A request that the relay does not read is answered by a reset alone, and the report has
// a reason that is true of it.
func TestRequestsThatAreNotRead(t *testing.T) {
	const good, host = "GET /good HTTP/1.1\r\nHost: a.test\r\n\r\n", "Host: a.test\r\n"
	for what, test := range map[string]struct{ said, why, later string }{
		"two hosts":              {"GET / HTTP/1.1\r\n" + host + host + "\r\n", "it does not begin with a valid HTTP request", "the HTTP request is malformed"},
		"no host":                {"GET / HTTP/1.1\r\n\r\n", "the HTTP request is not passed on: missing required host header", ""},
		"an encoding":            {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n", "the HTTP request is not passed on: unsupported transfer encoding", ""},
		"another version":        {"GET / HTTP/3.7\r\n" + host + "\r\n", "the HTTP request is not passed on: unsupported protocol version", ""},
		"an expectation":         {"GET / HTTP/1.1\r\n" + host + "Expect: much\r\n\r\n", "the HTTP request is not passed on: 417 expectation failed", ""},
		"a head that is too big": {"GET / HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n", "the HTTP request is not passed on: 431 request header fields too large", ""},
		"no HTTP":                {"SSH-2.0-x\r\n\r\n", "it does not begin with a valid HTTP request", "the HTTP request is malformed"},
	} {
		for _, before := range []string{"", good} {
			s, at := newSiteSession(t)
			got, err := speak(t, s, at, before+test.said)
			if err == nil || before == "" && got != "" || strings.Count(got, "HTTP/1.1") > 1 {
				t.Errorf("%s: %q, %v", what, got, err)
			}
			want := test.why
			if before != "" && test.later != "" {
				want = test.later
			}
			if r := s.report(); len(r.Refused) != 1 || r.Refused[0].Why != want || r.Refused[0].Name != "a.test" && r.Refused[0].Address == "" {
				t.Errorf("%s: %+v, want %q", what, r.Refused, want)
			}
		}
	}
}

// The flow of a request that is given up in its midst says why.
func TestRequestsThatAreGivenUp(t *testing.T) {
	const chunked = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
	for what, test := range map[string]struct{ said, answer, why string }{
		"a malformed body":          {chunked + "5\nabcde\n0\n\n", "", "the body of a request is malformed"},
		"half a body":               {chunked + "5\r\nab", "", "the tool ended a request before its end"},
		"a destination that ends":   {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "", "the destination ended the connection before a whole answer"},
		"an answer that is no HTTP": {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "SSH-2.0-x\r\n\r\n" + strings.Repeat("x", 8<<10), "the destination's answer cannot be read as HTTP"},
	} {
		l := listenAt(t, "127.0.0.1:0")
		done := make(chan struct{})
		go lab.Each(l, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(conn, test.answer)
			if test.answer != "" {
				<-done
			}
		})
		at := &site{at: addrOf(t, l)}
		s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", at.at)...)
		s.leadTo("a.test", at.at.Addr())
		if _, err := speak(t, s, at, test.said); err == nil {
			t.Errorf("%s: no reset", what)
		}
		close(done)
		if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != test.why || len(r.Refused) != 0 {
			t.Errorf("%s: %+v, want %q", what, r, test.why)
		}
		_ = l.Close()
	}
}
