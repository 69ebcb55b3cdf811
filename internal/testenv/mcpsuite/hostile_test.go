package mcpsuite

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// hostileWays are those of hostile.py, with what a call of its tool comes to: a part of
// the answer, as JSON, for a client of each generation.
var hostileWays = []struct{ way, tool, want string }{
	{"tools", "ok", `"text":"ok"`},
	{"pages", "", ""},
	{"circle", "ok", `"text":"ok"`},
	{"line", "do", "sent a message of more than 16777216 bytes"},
	{"ids", "do", `"text":"the first"`},
	{"asks", "do", `{\"a\": \"error\", \"b\": \"cancel\", \"c\": \"error\", \"d\": \"error\"}`},
	{"utf8", "do", `"text":"a�b"`},
	{"deep", "do", `"text":"t"`},
	{"keys", "do", `"text":"two"`},
	{"dies", "do", "exited with status 3"},
	{"uri", "do", `"uri":"toolhost:uri/far://uuu`}, // too long to be listed, and so not known to be its own
	{"notices", "do", `"text":"flooded"`},
}

// hostileServers has one of each kept beside a decent one.
func hostileServers(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("testdata/hostile.py")
	if err != nil {
		t.Fatal(err)
	}
	asks, err := filepath.Abs("testdata/asks.py")
	if err != nil {
		t.Fatal(err)
	}
	yaml := &strings.Builder{}
	fmt.Fprintf(yaml, "tools:\n  decent: {mcp: [python3, %s, old], read: [%s], pin: false, keep: true, readOnly: true}\n", asks, asks)
	for _, one := range hostileWays {
		fmt.Fprintf(yaml, "  %s: {mcp: [python3, %s, %s], read: [%s], pin: false, keep: true, readOnly: true, output: 4MiB}\n", one.way, program, one.way, program)
	}
	return yaml.String()
}

// TestHostileServers has servers that break what can be broken: what comes of it is bounded
// and true, and nobody else notices.
func TestHostileServers(t *testing.T) {
	stage.Of(t, "interop")
	address := serve(t, hostileServers(t))
	for _, revision := range []string{"2025-11-25", newest} {
		p := &peer{t: t, address: address, revision: revision}
		p.greet()
		tools := p.allTools()
		if n := strings.Count(tools, `"name":"tools__`); n != 1024 {
			t.Errorf("%d tools of 100,000 are offered, want 1024", n)
		}
		if n := strings.Count(tools, `"name":"pages__`); n != 1 {
			t.Errorf("%d tools of a list that has one, and no end, are offered", n)
		}
		for _, one := range hostileWays {
			if one.tool == "" {
				continue
			}
			answer := shape(t, p.answered("tools/call", map[string]any{"name": one.way + "__" + one.tool, "arguments": map[string]any{}}))
			if !strings.Contains(answer, one.want) || !utf8.ValidString(answer) || len(answer) > 5<<20 {
				t.Errorf("%s, client of %s: %d bytes, %.1500s", one.way, revision, len(answer), answer)
			}
			decent(p)
		}
		if !p.stateless() { // whose HTTP has the URI in a header, too, which the server for HTTP bounds
			p.mayNotRead()
		}
	}
}

// allTools is the list, page by page.
func (p *peer) allTools() (all string) {
	p.t.Helper()
	params := map[string]any{}
	for {
		page := p.ask("tools/list", params)
		all += shape(p.t, page["tools"])
		cursor, more := page["nextCursor"]
		if !more {
			return all
		}
		params = map[string]any{"cursor": cursor}
	}
}

func decent(p *peer) {
	p.t.Helper()
	got := p.answered("tools/call", map[string]any{"name": "decent__echo", "arguments": map[string]any{"text": "as ever"}})
	if !strings.Contains(shape(p.t, got), `"text":"as ever"`) {
		p.t.Errorf("the decent server says %.500s", shape(p.t, got))
	}
}

// mayNotRead: what names a resource is bounded, too.
func (p *peer) mayNotRead() {
	p.t.Helper()
	for _, size := range []int{1 << 20, 4 << 20} {
		answer := shape(p.t, p.answered("resources/read", map[string]any{"uri": "far://" + strings.Repeat("u", size)}))
		if !strings.Contains(answer, `"error"`) || len(answer) > 2*size {
			p.t.Errorf("a URI of %d bytes: %.500s", size, answer)
		}
	}
}

// TestHostileClients has clients that subscribe to all they can, and that read nothing.
func TestHostileClients(t *testing.T) {
	stage.Of(t, "interop")
	configuration := hostileServers(t)
	address, token := daemon(t, configuration)
	p := &peer{t: t, address: relay(t, address, token) + "/mcp", revision: "2025-11-25"}
	p.greet()
	refused := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < 1100; i += 8 {
				if answer := shape(t, p.answered("resources/subscribe", map[string]any{"uri": fmt.Sprintf("asks://many/%d", i)})); strings.Contains(answer, "which is the most") {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if refused != 1100-1024 {
		t.Errorf("%d subscriptions of 1100 are refused, want %d", refused, 1100-1024)
	}
	if answer := shape(t, p.answered("resources/subscribe", map[string]any{"uri": "asks://" + strings.Repeat("u", 9000)})); !strings.Contains(answer, "bytes: to be subscribed to it may have") {
		t.Errorf("a long URI is answered %.300s", answer)
	}
	decent(p)

	// One that opens its stream and takes nothing of it.
	deaf := &peer{t: t, address: p.address, revision: "2025-11-25"}
	deaf.greet()
	deaf.answered("resources/subscribe", map[string]any{"uri": "asks://ticks"})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n", address, token, deaf.session)
	heard := &peer{t: t, address: p.address, revision: "2025-11-25"}
	heard.greet()
	heard.answered("resources/subscribe", map[string]any{"uri": "asks://ticks"})
	events := heard.events(t)
	for range 3 {
		heard.answered("tools/call", map[string]any{"name": "notices__do", "arguments": map[string]any{}}) // to both of them
		heard.answered("tools/call", map[string]any{"name": "decent__tick", "arguments": map[string]any{}})
	}
	wait.Until(t, "the other client hears", func() bool {
		return strings.Contains(events.String(), "asks://ticks") && strings.Contains(events.String(), "tools/list_changed")
	})
	decent(p)
}

// said is what a stream has said so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// events opens the session's stream.
func (p *peer) events(t *testing.T) *said {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": p.session, "Mcp-Protocol-Version": p.revision} {
		r.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	s := &said{}
	go func() { _, _ = io.Copy(s, response.Body) }()
	return s
}
