package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/access/tokens"
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

// chained are the records of a state folder, whose chain must be whole.
func chained(t *testing.T, state string) (list []journal.Audit) {
	t.Helper()
	r, err := journal.OpenReader(state)
	if err == nil {
		err = errors.Join(r.Audits(0, func(a journal.Audit) bool { list = append(list, a); return true }), r.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// What happens while the journal cannot be written is logged at once, without a place in the
// chain; it gets one when there is room, and no number is used twice.
func TestAuditOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  one: {command: [echo, \"{text}\"], mode: ask}\n")
	d := w.daemon()
	w.approveAlways("one")
	restore := d.cannotWrite()
	if err := w.client.RevokeApproval(wait.Context(t), w.approvals()[0].ID); err != nil {
		t.Error(err)
	}
	d.waitLog("audit: approval.revoke: seq=0")
	restore()
	d.signal(syscall.SIGTERM)
	d.code()
	seen := map[int64]bool{}
	for _, line := range strings.Split(d.log.text(), "\n") {
		_, after, _ := strings.Cut(line, " seq=")
		number, _, of := strings.Cut(after, " ")
		seq, _ := strconv.ParseInt(number, 10, 64)
		if of && seq > 0 && seen[seq] {
			t.Errorf("two records have the number %d", seq)
		}
		seen[seq] = true
	}
	list := chained(t, w.State)
	if !slices.ContainsFunc(list, func(a journal.Audit) bool { return a.Action == "approval.revoke" }) || len(list) != 4 {
		t.Errorf("the chain has %+v", list)
	}
}

// A token that is on record as revoked is revoked again where its file is put back, and what
// was done with tokens right before the end is in the chain.
func TestATokenThatIsValidAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	store := tokens.Open(w.State)
	create := func(name string) {
		if _, _, err := store.Create(tokens.Spec{Name: name, By: "uid 0"}); err != nil {
			t.Fatal(err)
		}
	}
	create("ci")
	before, err := os.ReadFile(store.Path())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Revoke("ci", "uid 0"); err != nil {
		t.Fatal(err)
	}
	d.waitLog("token.revoke")
	if err := errors.Join(os.Remove(store.Path()), os.WriteFile(store.Path(), before, 0o600)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is revoked again", func() bool {
		list, err := store.List()
		return err == nil && len(list) == 1 && list[0].RevokedBy == "daemon"
	})
	create("last")
	d.signal(syscall.SIGTERM)
	d.code()
	var said []string
	for _, a := range chained(t, w.State) {
		if name, is := strings.CutPrefix(a.Action, tokens.ActionPrefix); is || a.Action == "daemon.stop" {
			said = append(said, a.Who+" "+name)
		}
	}
	if got := strings.Join(said, ", "); got != "uid 0 create, uid 0 revoke, somebody unknown change, daemon revoke, uid 0 create, daemon daemon.stop" {
		t.Errorf("the chain has %s", got)
	}
}

// Records that are too many to wait for the journal are counted in the chain.
func TestAuditWaitsForAWhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken, err := journal.Open(t.TempDir(), journal.Options{})
	if err == nil {
		err = broken.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	trail := trail{logger: hclog.NewNullLogger(), journal: broken}
	for i := range maxWaiting + 5 {
		trail.note("somebody", "work", fmt.Sprint(i))
	}
	if trail.journal, err = journal.Open(dir, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	trail.flush()
	trail.note("somebody", "work", "later")
	if err := trail.journal.Close(); err != nil {
		t.Fatal(err)
	}
	list := chained(t, dir)
	if n := len(list); n != maxWaiting+2 || list[n-2].Action != journal.ActionLost || list[n-2].What != "5 records" || list[n-3].What != fmt.Sprint(maxWaiting-1) {
		t.Errorf("%d records, at the end %+v", n, list[max(0, n-3):])
	}
}

// Configurations and refusals are in the chain and are sent, with the hashes that the
// chain has; a collector that takes connections and never answers holds up neither a
// call nor the end.
func TestAuditIsSentAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	deaf := listenDeaf(t)
	address, got := receiveSyslog(t)
	settings := fmt.Sprintf("  careful: {command: [echo, done], mode: ask}\ntelemetry: {otlp: {endpoint: \"http://%s\", audit: true, traces: false, metrics: false}, syslog: {address: \"tcp://%s\"}}\n", deaf, address)
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

// The end waits for all receivers that take connections and never answer at the same
// time: each of them for three seconds.
func TestDeafReceiversAreWaitedForTogether(t *testing.T) {
	t.Parallel()
	deaf := listenDeaf(t)
	w := newWorld(t, fmt.Sprintf("telemetry: {otlp: {endpoint: \"http://%s\", audit: true}, syslog: {address: \"tls://%[1]s\"}}\n", deaf))
	d := w.daemon()
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	d.signal(syscall.SIGTERM)
	d.waitLog("stopped")
	began := time.Now()
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if n := strings.Count(d.log.text(), "audit records are lost"); n != 2 {
		t.Errorf("%d receivers have missed records", n)
	}
	if took := time.Since(began); took > 2*3*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// listenDeaf is the address of a receiver that takes connections and never answers.
func listenDeaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
