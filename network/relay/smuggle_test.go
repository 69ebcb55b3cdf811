package relay

import (
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/network"
)

// lenient is a server that reads requests as nobody should: it keeps all bytes, and
// answers whatever comes.
type lenient struct {
	mu  sync.Mutex
	got strings.Builder
}

func (l *lenient) serve(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.got.Write(buf[:n])
		l.mu.Unlock()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

// otherHost is what some server could take for a request of another host: outside of
// bodies there must be no such line.
var otherHost = regexp.MustCompile(`(?i)(^|[\r\n])(host[ \t]*:[^\r\n]*evil|[A-Z]+ http://[^/\r\n]*evil)`)

// An answer comes as it was given, with nothing added.
func TestAnswersAreLeftAsTheyAre(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			(&lenient{}).serve(conn)
		}
	}()
	at := &site{at: addrOf(t, l)}
	s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", at.at)...)
	s.leadTo("a.test", at.at.Addr())
	const want = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	if got, err := speak(t, s, at, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// A destination that does not answer is given up, and the flow says so; one that
// something is sent to all the time is not.
func TestARequestOnWhichNothingMoves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	at := &site{at: addrOf(t, l)}
	s, _ := newSession(t, deaf(), network.Limits{Idle: 50 * time.Millisecond}, granted("a.test", at.at)...)
	s.leadTo("a.test", at.at.Addr())
	if got, err := speak(t, s, at, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); err == nil {
		t.Errorf("no reset after %q", got)
	}
	if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != errIdle.Error() {
		t.Errorf("%+v", r)
	}
}

// What two readers could read in two ways arrives in one, or not at all: the server
// here takes everything.
func TestRequestsThatTwoReadersReadDifferently(t *testing.T) {
	arrived := 0
	const host, hidden = "Host: a.test\r\n", "GET /s HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for what, said := range map[string]string{
		"a length and chunks":             "POST / HTTP/1.1\r\n" + host + "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunks with a tab":               "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + hidden,
		"two transfer encodings":          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"a chunk's extension and a LF":    "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n4c\r\nab\r\n0\r\n\r\n" + hidden,
		"an absolute URL and its host":    "GET http://evil.test/ HTTP/1.1\r\n" + host + "\r\n",
		"an absolute URL, another host":   "GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a URL in an opaque one":          "GET http:http://evil.test/ HTTP/1.1\r\n" + host + "\r\n",
		"a user in an absolute URL":       "GET http://a.test@evil.test/ HTTP/1.1\r\n" + host + "\r\n",
		"a user that looks like a host":   "GET http://evil.test@a.test/ HTTP/1.1\r\n" + host + "\r\n",
		"a host in a line's continuation": "GET / HTTP/1.1\r\nX: y\r\n Host: evil.test\r\n" + host + "\r\n",
		"a host after a bare CR":          "GET / HTTP/1.1\r\nX: a\rHost: evil.test\r\n" + host + "\r\n",
		"lines that end with LF":          "GET / HTTP/1.1\n" + host + "\nGET / HTTP/1.1\nHost: evil.test\n\n",
		"two hosts, the other one first":  "GET / HTTP/1.1\r\nHost: evil.test\r\n" + host + "\r\n",
		"a NUL in the host":               "GET / HTTP/1.1\r\nHost: a.test\x00.evil.test\r\n\r\n",
		"a user in the host":              "GET / HTTP/1.1\r\nHost: evil.test@a.test\r\n\r\n",
		"a trailer that is a host":        "POST / HTTP/1.1\r\n" + host + "Trailer: Host\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.test\r\n\r\n",
		"a WebSocket of another host":     "GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"a host that is one hop's":        "GET / HTTP/1.1\r\n" + host + "Connection: Host\r\n\r\n" + hidden,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		back := &lenient{}
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() { back.serve(conn) })
			}
		})
		at := &site{at: addrOf(t, l)}
		s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", at.at)...)
		s.leadTo("a.test", at.at.Addr())
		_, _ = speak(t, s, at, said)
		_ = l.Close()
		serving.Wait()
		if strings.Contains(back.got.String(), "Host: a.test\r\n") {
			arrived++
		}
		if found := otherHost.FindString(back.got.String()); found != "" {
			t.Errorf("%s: %q has arrived in %q", what, found, back.got.String())
		}
	}
	if arrived < 5 {
		t.Errorf("only %d of the requests have arrived: that shows nothing", arrived)
	}
}
