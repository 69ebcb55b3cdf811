package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/strictjson"
)

// overTCP sends a request to the TCP address.
func (w *world) overTCP(method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	by := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return w.sendBy(by, "http://"+w.address, method, path, body, header...)
}

const bearer = "Bearer " + testToken

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, port, _ := net.SplitHostPort(w.address)
	for name, test := range map[string]struct {
		header []string
		status int
		code   string
	}{
		"token":                  {[]string{"Authorization", bearer}, 200, ""},
		"token, other case":      {[]string{"Authorization", "bearer " + testToken}, 200, ""},
		"token, localhost":       {[]string{"Authorization", bearer, "Host", "localhost:" + port}, 200, ""},
		"token, own origin":      {[]string{"Authorization", bearer, "Origin", "http://" + w.address, "Sec-Fetch-Site", "same-origin"}, 200, ""},
		"nothing":                {nil, 401, codeUnauthorized},
		"wrong token":            {[]string{"Authorization", bearer + "x"}, 401, codeUnauthorized},
		"beginning of the token": {[]string{"Authorization", bearer[:len(bearer)-1]}, 401, codeUnauthorized},
		"empty token":            {[]string{"Authorization", "Bearer "}, 401, codeUnauthorized},
		"basic":                  {[]string{"Authorization", "Basic " + testToken}, 401, codeUnauthorized},
		"token, in capitals":     {[]string{"Authorization", bearer, "Host", "LocalHost:" + port}, 200, ""},
		"foreign host":           {[]string{"Authorization", bearer, "Host", "evil.example:" + port}, 403, codeBadHost},
		"rebound name":           {[]string{"Authorization", bearer, "Host", "localhost.evil.example"}, 403, codeBadHost},
		"another port":           {[]string{"Authorization", bearer, "Host", "localhost:1"}, 403, codeBadHost},
		"no port":                {[]string{"Authorization", bearer, "Host", "localhost"}, 403, codeBadHost},
		"foreign origin":         {[]string{"Authorization", bearer, "Origin", "http://evil.example"}, 403, codeBadOrigin},
		"null origin":            {[]string{"Authorization", bearer, "Origin", "null"}, 403, codeBadOrigin},
		"origin of another port": {[]string{"Authorization", bearer, "Origin", "http://127.0.0.1:1"}, 403, codeBadOrigin},
		"https origin":           {[]string{"Authorization", bearer, "Origin", "https://" + w.address}, 403, codeBadOrigin},
		"cross-site":             {[]string{"Authorization", bearer, "Sec-Fetch-Site", "cross-site"}, 403, codeBadOrigin},
		"same site, other port":  {[]string{"Authorization", bearer, "Sec-Fetch-Site", "same-site"}, 403, codeBadOrigin},
	} {
		status, body := w.overTCP("GET", "/api/turns/active", "", test.header...)
		if status != test.status || test.code != "" && !strings.Contains(body, `"code":"`+test.code+`"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if _, body := w.overTCP("GET", "/api/tools", "", "Authorization", "Basic "+testToken); !strings.Contains(body, "the scheme of Authorization is not Bearer") {
		t.Errorf("another scheme: %s", body)
	}
	if status, _ := w.overTCP("GET", "/api/health", ""); status != 200 {
		t.Errorf("health without a token: %d", status)
	}
	if status, _ := w.overTCP("GET", "/api/health", "", "Host", "evil.example"); status != 403 {
		t.Errorf("health for another host: %d", status)
	}
	if status, _ := w.send("GET", "/api/turns/active", "", "Origin", "http://evil.example"); status != 403 {
		t.Errorf("foreign origin on the unix socket: %d", status)
	}
}

// Without a token nobody gets in by TCP, an empty one least of all.
func TestNoTokenLetsNobodyIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Token = "" })
	for _, header := range [][]string{nil, {"Authorization", "Bearer "}, {"Authorization", "Bearer"}, {"Authorization", bearer}} {
		if status, _ := w.overTCP("GET", "/api/tools", "", header...); status != 401 {
			t.Errorf("%q: %d", header, status)
		}
	}
}

// On the unix socket the peer's user counts, and no token makes up for it.
func TestPeersAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) {
		c.Book = func() access.Book { return access.Book{Guests: []uint32{uint32(os.Geteuid()) + 1}} }
	})
	for _, path := range []string{"/api/tools", "/api/health"} {
		if status, body := w.send("GET", path, "", "Authorization", bearer); status != 403 || !strings.Contains(body, codeForbidden) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// A handler that is served by another server than HTTP's own knows no peer, and
// wants a token.
func TestAnUnknownServerFailsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other := httptest.NewServer(w.server)
	defer other.Close()
	for header, want := range map[string]int{"": 401, bearer: 200} {
		if status, _ := w.sendBy(other.Client(), other.URL, "GET", "/api/tools", "", "Authorization", header); status != want {
			t.Errorf("%q: %d, want %d", header, status, want)
		}
	}
}

func TestAbuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.MaxBodyBytes = 1 << 16 })
	w.begin(api.TurnSpec{TurnID: "t"})
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	arrays := strings.Repeat("[", strictjson.MaxDepth) + strings.Repeat("]", strictjson.MaxDepth)
	for name, test := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		says               string
	}{
		"form":               {"POST", "/api/turns", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, codeMediaType},
		"text":               {"POST", "/api/turns", "{}", []string{"Content-Type", "text/plain"}, 415, codeMediaType},
		"other charset":      {"POST", "/api/turns", "{}", []string{"Content-Type", "application/json; charset=utf-16"}, 415, codeMediaType},
		"compressed":         {"POST", "/api/turns", "{}", []string{"Content-Encoding", "gzip"}, 415, codeMediaType},
		"empty form":         {"POST", "/api/turns/t/abort", "", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, codeMediaType},
		"large":              {"POST", "/api/turns", `{"agentId":"` + strings.Repeat("x", 1<<16) + `"}`, nil, 413, "more than 65536 bytes"},
		"deep":               {"POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","arguments":` + deep[:60_000] + "}]}", nil, 400, "nested deeper"},
		"how deep":           {"POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","arguments":` + arrays + "}]}", nil, 400, "no deeper than 128"},
		"how often a key":    {"POST", "/api/turns", `{"agentId":"a","agentId":"b"}`, nil, 400, "each key once"},
		"deep arrays":        {"POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","arguments":` + arrays + "}]}", nil, 400, "nested deeper"},
		"no JSON":            {"POST", "/api/turns", "{]", nil, 400, codeBadJSON},
		"half":               {"POST", "/api/turns", `{"agentId":"`, nil, 400, "too early"},
		"two":                {"POST", "/api/turns", "{} {}", nil, 400, "goes on"},
		"list":               {"POST", "/api/turns", "[]", nil, 400, "not a JSON object"},
		"no UTF-8":           {"POST", "/api/turns", "{\"agentId\":\"\xff\"}", nil, 400, "UTF-8"},
		"duplicate key":      {"POST", "/api/turns", `{"agentId":"a","agentId":"b"}`, nil, 400, "twice"},
		"deeper duplicate":   {"POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","arguments":{"a":{"b":1,"b":2}}}]}`, nil, 400, "twice"},
		"unknown field":      {"POST", "/api/turns", `{"agent":"a"}`, nil, 400, "agent"},
		"other case":         {"POST", "/api/turns", `{"AgentID":"a"}`, nil, 400, "AgentID"},
		"unknown in a call":  {"POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","problem":"x"}]}`, nil, 400, "problem"},
		"wrong type":         {"POST", "/api/turns", `{"maxCalls":"many"}`, nil, 400, "maxCalls"},
		"negative":           {"POST", "/api/turns", `{"deadlineMs":-1}`, nil, 400, "deadlineMs"},
		"huge number":        {"POST", "/api/turns", `{"deadlineMs":1e300}`, nil, 400, "deadlineMs"},
		"fraction":           {"POST", "/api/turns", `{"maxCalls":1.5}`, nil, 400, "maxCalls"},
		"body where none is": {"POST", "/api/turns/t/abort", `{"really":true}`, nil, 400, "really"},
		"body of a GET":      {"GET", "/api/tools", `{"x":1}`, nil, 400, "x"},
		"unknown parameter":  {"GET", "/api/tools?x=1", "", nil, 400, "no parameter x"},
		"parameter twice":    {"GET", "/api/history/turns?limit=1&limit=2", "", nil, 400, "more than once"},
		"bad query":          {"GET", "/api/history/turns?limit=%zz", "", nil, 400, "malformed"},
		"limit over bound":   {"GET", "/api/history/turns?limit=10001", "", nil, 400, "1 to 10000"},
		"bad status":         {"GET", "/api/history/calls?status=nosuch", "", nil, 400, "must be one of open, cancelled"},
		"number in exponent": {"POST", "/api/turns", `{"maxCalls":1e2}`, nil, 400, "maxCalls is the number 1e2, want a whole number in digits"},
		"bad limit":          {"GET", "/api/history/turns?limit=-1", "", nil, 400, "limit"},
		"bad time":           {"GET", "/api/history/calls?since=yesterday", "", nil, 400, "since"},
		"bad event id":       {"GET", "/api/turns/t/events", "", []string{"Last-Event-ID", "x"}, 400, "Last-Event-ID"},
		"method":             {"DELETE", "/api/turns/t", "", nil, 405, codeMethod},
		"HEAD":               {"HEAD", "/api/tools", "", nil, 405, ""},
		"unknown path":       {"GET", "/api/nothing", "", nil, 404, codeNotFound},
		"no page":            {"GET", "/index.html", "", nil, 404, codeNotFound},
		"traversal":          {"GET", "/api/turns/../../etc/passwd", "", nil, 404, codeNotFound},
		"encoded traversal":  {"GET", "/api/history/turns/%2e%2e%2f%2e%2e%2fetc%2fpasswd/events", "", nil, 404, codeNotFound},
		"line in an id":      {"GET", "/api/turns/a%0d%0aX-Evil:%201", "", nil, 404, `a\\r\\nX-Evil`},
		"control in a body":  {"POST", "/api/calls", `{"turnId":"t2\u001b","calls":[]}`, nil, 400, `\"t2\\x1b\"`},
		"backslash in an id": {"GET", "/api/turns/a%5Cb%22", "", nil, 404, `a\\b\" is active`},
		"NUL in an id":       {"POST", "/api/turns/%00/abort", "", nil, 404, codeNotFound},
		"empty id":           {"GET", "/api/turns//events", "", nil, 404, codeNotFound},
		"unknown result":     {"GET", "/api/history/turns/t/calls/none", "", nil, 404, codeNotFound},
		"unknown replay":     {"GET", "/api/history/turns/none/events", "", nil, 404, codeNotFound},
	} {
		status, body := w.raw(test.method, test.path, test.body, test.header...)
		if status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: %d %.300s", name, status, body)
		}
	}
	if status, body := w.send("POST", "/api/turns/t/abort", "", "Content-Type", "application/json"); status != 200 {
		t.Errorf("no body, said to be JSON: %d %s", status, body)
	}
	if status, body := w.send("GET", "/api/turns/t", ""); status != 200 || !strings.Contains(body, `"toolCallCount":0`) {
		t.Errorf("after all that: %d %s", status, body)
	}
}

// raw sends a path as it is, which net/http's client would tidy.
func (w *world) raw(method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), method, "http://localhost/", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.URL.Opaque = path
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.unix.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Evil": ""} {
		if got := response.Header.Get(name); got != want {
			w.t.Errorf("%s %s: header %s is %q", method, path, name, got)
		}
	}
	if method == http.MethodHead {
		response.Body.Close()
		return response.StatusCode, ""
	}
	return response.StatusCode, w.bodyOf(response)
}

// A client that begins a request and then says nothing is not waited for.
func TestHalfARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Stall = 50 * time.Millisecond })
	for head, want := range map[string]string{
		"POST /api/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{": "HTTP/1.1 408 Request Timeout\r\n",
		"POST /api/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{":                                    "HTTP/1.1 404 Not Found\r\n",
		"GET /api/tools HT": "HTTP/1.1 400 Bad Request\r\n",
	} {
		until(t, "an answer", func() bool {
			first := w.half(head)
			if first != "" && first != want {
				t.Errorf("%.40q: %q; want %q", head, first, want)
			}
			return first != "" // else it came too late to be heard
		})
	}
}

// half sends what is not a whole request, and gives the first line that comes back
// before the daemon hangs up.
func (w *world) half(head string) (first string) {
	w.t.Helper()
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	if _, err := io.WriteString(conn, head); err != nil {
		return ""
	}
	answer := bufio.NewReader(conn)
	first, _ = answer.ReadString('\n')
	_, _ = io.Copy(io.Discard, answer)
	return first
}

func TestALongHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	conn := w.dial("GET /api/tools HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 64<<10))
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	if first, err := bufio.NewReader(conn).ReadString('\n'); first != "HTTP/1.1 431 Request Header Fields Too Large\r\n" {
		t.Errorf("%q, %v", first, err)
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

type panicky struct{}

func (panicky) Tools(context.Context, string) ([]api.Tool, []error) { panic("oh dear") }

// A panic is one request's, and secrets are nobody's.
func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, func(c *Config) {
		c.Tools, c.Logger = panicky{}, hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace})
	})
	if status, body := w.overTCP("GET", "/api/tools", "", "Authorization", bearer); status != 500 || strings.Contains(body, "oh dear") {
		t.Errorf("%d %s", status, body)
	}
	if said := log.text.String(); !strings.Contains(said, "oh dear") || strings.Contains(said, testToken) {
		t.Errorf("log: %s", said)
	}
}

func TestACatalogueWithProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Tools = catalogue{[]error{os.ErrPermission}} })
	if status, body := w.send("GET", "/api/tools", ""); status != 200 || !strings.Contains(body, `"problems":["permission denied"]`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestNoHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.History = nil })
	for _, path := range []string{"/api/history/turns", "/api/history/calls", "/api/history/turns/x/events", "/api/history/turns/x/calls/y"} {
		if status, body := w.send("GET", path, ""); status != 404 || !strings.Contains(body, codeNoHistory) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	made, err := LoadToken(path)
	if err != nil || len(made) < minTokenBytes {
		t.Fatalf("%q, %v", made, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := LoadToken(path); err != nil || again != made {
		t.Errorf("%q, %v; want the same", again, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	long := strings.Repeat("x", 64)
	for name, spoil := range map[string]func(string) error{
		"readable": func(p string) error { return os.WriteFile(p, []byte(long), 0o644) },
		"short":    func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) },
		"empty":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"endless":  func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 1<<20)), 0o600) },
		"lines":    func(p string) error { return os.WriteFile(p, []byte(long+"\n"+long), 0o600) },
		"link":     func(p string) error { return os.Symlink(path, p) },
		"folder":   func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		spoilt := filepath.Join(dir, name)
		if err := spoil(spoilt); err != nil {
			t.Fatal(err)
		}
		if token, err := LoadToken(spoilt); err == nil || token != "" || strings.Contains(err.Error(), long) {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
	if _, err := LoadToken(filepath.Join(dir, "none", "token")); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

// Of several that make the file at once, all get the same token.
func TestTokenFileIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	tokens := make(chan string, 8)
	for range cap(tokens) {
		go func() {
			token, err := LoadToken(path)
			if err != nil {
				t.Error(err)
			}
			tokens <- token
		}()
	}
	first := <-tokens
	for range cap(tokens) - 1 {
		if token := <-tokens; token != first {
			t.Errorf("%q and %q", first, token)
		}
	}
}
