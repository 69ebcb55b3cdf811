package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Bodies of one who has a quota do not keep others waiting, and what is too much is
// refused at once, whether its length is declared or not.
func TestQuotaOfBodies(t *testing.T) {
	t.Parallel()
	m := newTeamWith(t, access.Profile{Name: "caller", Quota: access.Quota{BodyBytes: 300 << 10}})
	begin := func(length, sent int, declared bool) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", m.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		framing := fmt.Sprint("Content-Length: ", length)
		if !declared {
			framing = "Transfer-Encoding: chunked"
		}
		fmt.Fprintf(conn, "POST /api/turns HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", m.address, m.tokens["caller"], framing)
		if !declared {
			fmt.Fprintf(conn, "%x\r\n", length)
		}
		fmt.Fprint(conn, strings.Repeat(" ", sent))
		if !declared {
			fmt.Fprint(conn, "\r\n0\r\n\r\n")
		}
		return conn
	}
	answer := func(conn net.Conn) (*http.Response, string) {
		t.Helper()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		said, _ := io.ReadAll(response.Body)
		return response, string(said)
	}
	first := begin(200<<10, 0, true)
	wait.Until(t, "the first body is in flight", func() bool {
		part := m.server.intake.quotas.Part("token caller", 1)
		defer part.Release()
		return part.Take(1) != nil
	})
	for _, declared := range []bool{true, false} {
		response, said := answer(begin(150<<10, 150<<10, declared))
		if response.StatusCode != 429 || response.Header.Get("Retry-After") == "" || !strings.Contains(said, "quota_exceeded") || !strings.Contains(said, "its quota of 307200 (access: quota: bodies)") {
			t.Errorf("declared %t: %d %v %s", declared, response.StatusCode, response.Header, said)
		}
	}
	if response, said := answer(begin(400<<10, 400<<10, true)); response.StatusCode != 413 || !strings.Contains(said, "quota: bodies") {
		t.Errorf("more than there ever is: %d %s", response.StatusCode, said)
	}
	if status, said := m.as("other", "POST", "/api/turns", "{"+strings.Repeat(" ", 400<<10)+"}"); status != 201 {
		t.Errorf("another's: %d %s", status, said)
	}
	fmt.Fprint(first, "{"+strings.Repeat(" ", 200<<10-2)+"}")
	if response, said := answer(first); response.StatusCode != 201 {
		t.Errorf("the first: %d %s", response.StatusCode, said)
	}
	if status, said := m.as("caller", "POST", "/api/turns", "{"+strings.Repeat(" ", 290<<10)+"}"); status != 201 {
		t.Errorf("when that is answered: %d %s", status, said)
	}
}

// Streams are an identity's up to its quota, and without one as many as are left: others
// have some, too, and what is closed can be opened again.
func TestQuotaOfStreams(t *testing.T) {
	t.Parallel()
	m := newTeamOf(t, func(c *Config) {
		c.MaxStreams = 8
		c.Book = func() access.Book {
			return access.Book{Admins: ownUsers(), Profiles: []access.Profile{{Name: "caller", Quota: access.Quota{Streams: 1}}}}
		}
	})
	open := func(who string) (io.Closer, int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(m.ctx(), "POST", "http://"+m.address+"/api/turns", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+m.tokens[who])
		r.Header.Set("Accept", eventStream)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		said := ""
		if response.StatusCode != http.StatusOK {
			said = m.bodyOf(response)
		}
		return response.Body, response.StatusCode, said
	}
	first, status, said := open("caller")
	if status != 200 {
		t.Fatalf("the first: %d %s", status, said)
	}
	if _, status, said := open("caller"); status != 429 || !strings.Contains(said, "quota_exceeded") || !strings.Contains(said, "1 streams of events open, which are its quota (access: quota: streams)") {
		t.Errorf("one more: %d %s", status, said)
	}
	first.Close()
	wait.Until(t, "the first one is closed", func() bool { return m.server.streams.open() == 0 })
	if _, status, said := open("caller"); status != 200 {
		t.Errorf("again: %d %s", status, said)
	}
	got := 0
	for range 8 {
		if _, status, _ := open("other"); status == 200 {
			got++
		} else if status != 503 {
			t.Errorf("another's: %d", status)
		}
	}
	if _, status, said := open("both"); got < 3 || got > 4 || status != 200 {
		t.Errorf("beside one who has taken %d of 8: %d %s", got, status, said)
	}
}

// Who comes from many addresses is one all the same.
func TestTheShareOfBodiesIsAnIdentitys(t *testing.T) {
	one := caller{Identity: access.Identity{Name: "token ci", Roles: []access.Role{access.Call}}}
	r := func(from string) *http.Request { return &http.Request{RemoteAddr: from} }
	if a, b := bodyKey(r("127.0.0.1:1"), one), bodyKey(r("127.0.0.9:2"), one); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := bodyKey(r("127.0.0.1:1"), caller{}), bodyKey(r("127.0.0.9:2"), caller{}); a == b {
		t.Errorf("strangers share %s", a)
	}
}
