package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// messages is a receiver of syslog on loopback: the records that it has got.
type messages struct {
	mu   sync.Mutex
	list []string
}

func (m *messages) add(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, text)
}

func (m *messages) all() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.list, "\n")
}

func receiveSyslog(t *testing.T) (address string, got *messages) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got = &messages{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				in := bufio.NewReader(c)
				for {
					var n int
					if _, err := fmt.Fscanf(in, "%d ", &n); err != nil {
						return
					}
					raw := make([]byte, n)
					if _, err := io.ReadFull(in, raw); err != nil {
						return
					}
					got.add(string(raw))
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

// Configurations and refusals are in the chain and are sent, with the hashes that the
// chain has; a collector that takes connections and never answers holds up neither a
// call nor the end.
func TestAuditIsSentAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	address, got := receiveSyslog(t)
	settings := fmt.Sprintf("  careful: {command: [echo, done], mode: ask}\ntelemetry: {otlp: {endpoint: \"http://%s\", audit: true, traces: false, metrics: false}, syslog: {address: \"tcp://%s\"}}\n", deaf.Addr(), address)
	w := newWorld(t, settings)
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	call := &mcpsdk.CallToolParams{Name: "careful"}
	if r, err := w.mcpClient(mcpVersions[0], humanWho("accept")).CallTool(wait.Context(t), call); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	wait.Until(t, "who has approved is sent", func() bool {
		return strings.Contains(got.all(), fmt.Sprintf(`"who":"uid %d, MCP client test","action":"interaction.answer","what":"yes, for the session, to `, os.Getuid()))
	})
	if r, err := http.Get(d.tcp() + "/api/tools"); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v, %v", r, err)
	}
	w.configure(settings + "kill: {grace: 1s}\n")
	d.signal(syscall.SIGHUP)
	wait.Until(t, "the reload is sent", func() bool { return strings.Contains(got.all(), `"config.reload"`) })
	if err := os.WriteFile(w.Config, []byte("kil: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	wait.Until(t, "the refused configuration is sent", func() bool { return strings.Contains(got.all(), "not loaded: ") })
	d.signal(syscall.SIGTERM)
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d: %s", code, d.log.text())
	}
	if !strings.Contains(d.log.text(), "audit records are lost") {
		t.Errorf("nothing says that the collector has missed records: %s", d.log.text())
	}
	reader, err := journal.OpenReader(w.State)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	actions, hashes := map[string]int{}, map[string]bool{}
	err = reader.Audits(0, func(a journal.Audit) bool {
		actions[a.Action]++
		if sent := got.all(); a.Action != "daemon.stop" && !strings.Contains(sent, a.Hash) {
			t.Errorf("record %d (%s) was not sent: %s", a.Seq, a.Action, sent)
		}
		if a.Action == "daemon.start" || a.Action == "config.reload" && a.Outcome == "" {
			hashes[a.What] = true
		}
		return true
	})
	if err != nil || actions["daemon.start"] != 1 || actions["config.reload"] != 2 || actions[journal.ActionRefused] != 1 || actions["daemon.stop"] != 1 || len(hashes) != 2 {
		t.Errorf("%v, %v, %v", actions, hashes, err)
	}
	for _, line := range strings.Split(got.all(), "\n") {
		_, raw, _ := strings.Cut(line, " - ")
		if !json.Valid([]byte(raw)) {
			t.Errorf("not JSON: %q", line)
		}
	}
}
