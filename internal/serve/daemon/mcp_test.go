package daemon

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// mcpTransport leads to a daemon's socket.
func mcpTransport(socket string) (transport *mcpsdk.StreamableClientTransport, release func()) {
	wires := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	return &mcpsdk.StreamableClientTransport{
		Endpoint: "http://localhost" + mcpPath, HTTPClient: &http.Client{Transport: wires},
		MaxRetries: 1, // without one, the end of the stream of notifications fails a call whose answer is on its way
	}, wires.CloseIdleConnections
}

// mcpClient is connected, and speaks a version of the protocol.
func (w *world) mcpClient(version string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	w.t.Helper()
	transport, release := mcpTransport(w.Socket)
	w.t.Cleanup(release)
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test"}, o)
	session, err := client.Connect(wait.Context(w.t), transport, &mcpsdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return session
}

// mcpVersions are both generations of the protocol.
var mcpVersions = []string{"2025-11-25", "2026-07-28"}

func (w *world) offered(session *mcpsdk.ClientSession) (names []string) {
	w.t.Helper()
	list, err := session.ListTools(wait.Context(w.t), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// MCP clients see the tools of the configuration in force, are told when it
// changes, and a call of theirs is over, with its result, before the daemon is.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) { testMCP(t, version) })
	}
}

func testMCP(t *testing.T, version string) {
	w := newWorld(t, "  old: {command: [echo, old]}\n")
	d := w.daemon()
	changed := make(chan struct{}, 16)
	session := w.mcpClient(version, &mcpsdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcpsdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	if names := w.offered(session); !slices.Contains(names, "old") || !slices.Contains(names, "session_status") {
		t.Fatalf("tools %v", names)
	}
	result, err := session.CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: "old"})
	if err != nil || result.IsError || mcpText(result) != "old\n" {
		t.Fatalf("%+v, %v", result, err)
	}
	for len(changed) > 0 {
		<-changed
	}
	w.configure("  new: {command: [echo, new]}\n")
	d.signal(syscall.SIGHUP)
	select {
	case <-changed:
	case <-wait.Context(t).Done():
		t.Fatal("nobody is told")
	}
	wait.Until(t, "the new tool is offered in place of the old one", func() bool {
		names := w.offered(session)
		return slices.Contains(names, "new") && !slices.Contains(names, "old")
	})

	file := filepath.Join(w.dir, "go")
	done := make(chan *mcpsdk.CallToolResult, 1)
	go func() {
		result, err := session.CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: "work", Arguments: workArgs{For: file}})
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	wait.Until(t, "the call runs", func() bool { return w.left() > 0 })
	d.signal(syscall.SIGTERM)
	d.waitLog("stopping")
	w.letGo(file)
	if result := <-done; result == nil || result.IsError {
		t.Errorf("the call that ran: %+v", result)
	}
	if code := d.code(); code != 0 || w.left() > 0 || strings.Contains(d.log.text(), "have not read") {
		t.Errorf("exit status %d, %d processes left:\n%s", code, w.left(), d.log.text())
	}
}

// mcpText is what a model reads.
func mcpText(r *mcpsdk.CallToolResult) (all string) {
	for _, c := range r.Content {
		if text, ok := c.(*mcpsdk.TextContent); ok {
			all += text.Text
		}
	}
	return all
}

// A call over MCP shows progress and ends at the time that the client names, by
// its cancellation, or with the client. Nothing of it is left.
func TestMCPCallsEnd(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "mcp: {clientTimeout: infinite}\n")
			w.daemon()
			told := make(chan string, 256)
			session := w.mcpClient(version, &mcpsdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcpsdk.ProgressNotificationClientRequest) {
				told <- r.Params.Message
			}})
			for _, key := range []string{"dev.toolhost/timeoutMs", "timeout"} {
				r, err := session.CallTool(wait.Context(t), &mcpsdk.CallToolParams{
					Name: "work", Arguments: workArgs{Text: "begun with " + key, Deaf: true}, Meta: mcpsdk.Meta{key: 8000},
				})
				if err != nil || !r.IsError || !strings.HasPrefix(mcpText(r), "[TIMEOUT]") || !strings.Contains(mcpText(r), "begun with "+key) || w.left() > 0 {
					t.Errorf("%s: %+v, %v, %d processes left", key, r, err, w.left())
				}
			}
			ctx, cancel := context.WithCancel(wait.Context(t))
			p := endless()
			p.SetProgressToken("token")
			go func() {
				if <-told == "begun" {
					cancel()
				}
			}()
			if r, err := session.CallTool(ctx, p); err == nil {
				t.Errorf("a cancelled call has a result: %+v", r)
			}
			wait.Until(t, "the cancelled call is gone", func() bool { return w.left() == 0 })

			victim := exec.Command(os.Args[0], "-test.run=^TestPlayMCPClient$")
			victim.Env = append(os.Environ(), asMCPClient+"="+w.Socket, asMCPVersion+"="+version)
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "its call runs", func() bool { return w.left() > 0 })
			_ = victim.Process.Kill()
			_ = victim.Wait()
			wait.Until(t, "the call is gone with its client", func() bool { return w.left() == 0 })
		})
	}
}

// endless is a call that no timeout ends while the test runs.
func endless() *mcpsdk.CallToolParams {
	return &mcpsdk.CallToolParams{
		Name: "work", Arguments: workArgs{Text: "begun", Deaf: true}, Meta: mcpsdk.Meta{"dev.toolhost/timeoutMs": time.Hour.Milliseconds()},
	}
}

const (
	asMCPClient  = "TOOLHOST_TEST_MCP_CLIENT" // of the daemon at this socket
	asMCPVersion = "TOOLHOST_TEST_MCP_VERSION"
)

// TestPlayMCPClient is not a test but the client that another one kills.
func TestPlayMCPClient(t *testing.T) {
	socket := os.Getenv(asMCPClient)
	if socket == "" {
		return
	}
	transport, _ := mcpTransport(socket)
	session, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "victim"}, nil).Connect(t.Context(), transport, &mcpsdk.ClientSessionOptions{ProtocolVersion: os.Getenv(asMCPVersion)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(t.Context(), endless())
	t.Fatalf("not killed: %+v, %v", r, err)
}
