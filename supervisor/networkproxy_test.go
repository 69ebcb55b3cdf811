package supervisor_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/supervisor"
)

// outbound is an HTTP proxy that leads everything to the lab.
type outbound struct {
	mu   sync.Mutex
	seen []string
}

func (o *outbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.seen = append(o.seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	o.mu.Unlock()
	if strings.HasPrefix(r.Host, "b.") {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodConnect {
		fmt.Fprintf(w, "proxied %s", r.URL)
		return
	}
	_, port, _ := net.SplitHostPort(r.Host)
	to, err := net.Dial("tcp", net.JoinHostPort(lab.Address, port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	// In one packet with what the destination says first.
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
	go func() {
		_, _ = io.Copy(to, rw)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, to)
}

func TestAnOutboundProxy(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	proxy := &outbound{}
	listener, err := net.Listen("tcp", lab.Address+":3128")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: proxy}
	go server.Serve(listener)
	t.Cleanup(func() { _ = server.Close() })
	for _, v := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
		t.Setenv(v, "http://user:secret@"+lab.Address+":3128")
	}
	t.Setenv("NO_PROXY", "direct.test,x.wild.test")
	l.Set("evil.test", "127.0.0.1")
	host := newHost(t, supervisor.Config{})
	lines := []string{
		"get https://a.test/x", "get http://a.test/y?z", "echo a.test:2222 hello", "echo direct.test:2222 hello", "get http://203.0.113.10/addr", "get https://x.wild.test/w",
		"get https://b.test/", "get http://evil.test/e", "tls a.test:443 b.test", "get https://nowhere.example/",
	}
	r := call(t, host, reaching(t, l, with("a.test", "a.test:2222", "direct.test:2222", "x.wild.test", "b.test", "evil.test"), lines...))
	wantStatus(t, r, api.StatusOK)
	got := said(r)
	for i, want := range []string{
		"GET a.test /x", "proxied http://a.test/y?z", "ready hello", "ready hello", "GET 203.0.113.10 /addr", "GET x.wild.test /w", "error: ", "proxied http://evil.test/e", "error: ", "error: ",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("%s: %q, want %q", lines[i], got, want)
		}
	}
	const basic = "Basic dXNlcjpzZWNyZXQ="
	for _, want := range []string{"CONNECT a.test:443 ", "GET http://a.test/y?z ", "CONNECT a.test:2222 ", "CONNECT b.test:443 ", "GET http://evil.test/e "} {
		if !strings.Contains(strings.Join(proxy.seen, "\n")+"\n", want+basic+"\n") {
			t.Errorf("no %q in %q", want, proxy.seen)
		}
	}
	if len(proxy.seen) != 5 {
		t.Errorf("the proxy was asked for %q", proxy.seen)
	}
	for _, f := range r.Network.Flows {
		if direct := f.Name == "" || f.Name == "direct.test" || f.Name == "x.wild.test"; (f.Via == "proxy") == direct || (f.Address == "") == direct {
			t.Errorf("%+v", f)
		}
	}
	if f := flowOf(t, r, "a.test", lab.EchoPort); f.SentBytes != 5 || f.ReceivedBytes != 11 {
		t.Errorf("%+v", f)
	}
	if f := flowOf(t, r, "b.test", 443); !strings.Contains(f.Error, "403") {
		t.Errorf("%+v", f)
	}
	if n := l.Queries("a.test") + l.Queries("evil.test"); n != 0 {
		t.Errorf("%d lookups of names that the proxy looks up", n)
	}
	if strings.Contains(fmt.Sprint(r.Network), "secret") {
		t.Errorf("%+v", r.Network)
	}
}
