//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and clients may still use them

package mcpsuite

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// keeping has asks.py of one generation wrapped with a process that is kept, and once
// more without.
func keeping(t *testing.T, generation string) string {
	t.Helper()
	program, err := filepath.Abs("testdata/asks.py")
	if err != nil {
		t.Fatal(err)
	}
	wrapped := fmt.Sprintf("mcp: [python3, %s, %s], read: [%s], pin: false, readOnly: true, repeatable: true", program, generation, program)
	return fmt.Sprintf("tools:\n  kept: {%s, keep: true}\n  fresh: {%s}\n", wrapped, wrapped)
}

// hears is a client that keeps what it is told.
type hears struct {
	t       *testing.T
	session *mcp.ClientSession
	client  *mcp.Client

	mu      sync.Mutex
	heard   []string
	answer  mcp.ElicitResult // to what is asked next
	asked   *mcp.ElicitParams
	sampled *mcp.CreateMessageParams
}

func (h *hears) hear(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, what)
}

func (h *hears) times(what string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.heard {
		if one == what {
			n++
		}
	}
	return n
}

func (h *hears) await(what string, times int) {
	h.t.Helper()
	wait.Until(h.t, fmt.Sprintf("%s is heard %d times", what, times), func() bool { return h.times(what) >= times })
}

// options have a client hear everything that servers announce.
func (h *hears) options() *mcp.ClientOptions {
	o := &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { h.hear("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { h.hear("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { h.hear("resources") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			h.hear("updated " + r.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { h.hear(fmt.Sprint(r.Params.Data)) },
	}
	h.answers(o)
	return o
}

func (h *hears) call(tool string, meta mcp.Meta) string {
	h.t.Helper()
	result, err := h.session.CallTool(wait.Context(h.t), &mcp.CallToolParams{Meta: meta, Name: tool, Arguments: map[string]any{}})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	return textOf(result)
}

// TestPairs has clients of both generations with servers of both, over both transports:
// everything that a server may have, announce, and ask of its client.
func TestPairs(t *testing.T) {
	stage.Of(t, "interop")
	for _, generation := range []string{"old", "new"} {
		configuration := keeping(t, generation)
		for _, version := range []string{"2025-11-25", newest} {
			t.Run(fmt.Sprintf("client of %s, %s server, stdio", version, generation), func(t *testing.T) {
				t.Parallel()
				pair(t, version, generation, stdio(t, configuration))
			})
			t.Run(fmt.Sprintf("client of %s, %s server, HTTP", version, generation), func(t *testing.T) {
				t.Parallel()
				address, token := daemon(t, configuration)
				pair(t, version, generation, &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}})
			})
		}
	}
}

func stdio(t *testing.T, configuration string) mcp.Transport {
	t.Helper()
	dir := t.TempDir()
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "toolhost.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "toolhost"), "mcp", "--config", file, "--state", filepath.Join(dir, "state"))
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd}
}

func pair(t *testing.T, version, generation string, transport mcp.Transport) {
	h := &hears{t: t}
	h.client = mcp.NewClient(&mcp.Implementation{Name: "pair", Version: "1"}, h.options())
	var err error
	if h.session, err = h.client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	defer h.session.Close()
	h.offers()
	h.asksAll()
	h.progresses()
	h.listsChange() // before a stream ends: over one connection the SDK's server forgets the lists then
	h.hasGrown()
	h.subscribes(version)
	h.levels(version)
	h.rootsChange(version, generation)
}

func (h *hears) subscribes(version string) {
	const uri = "asks://ticks"
	h.t.Helper()
	subscribe := func() {
		h.t.Helper()
		if err := h.session.Subscribe(wait.Context(h.t), &mcp.SubscribeParams{URI: uri}); err != nil {
			h.t.Fatalf("subscribe: %v", err)
		}
	}
	subscribe()
	ticked := h.times("updated " + uri)
	wait.Until(h.t, "a change is announced", func() bool { // a stream may open a little later
		h.call("kept__tick", nil)
		return h.times("updated "+uri) > ticked
	})
	if version < newest { // what follows the ticks has come: so have they
		grown := h.times("tools")
		h.call("kept__grow", nil)
		h.await("tools", grown+1)
	}
	if err := h.session.Unsubscribe(wait.Context(h.t), &mcp.UnsubscribeParams{URI: uri}); err != nil {
		h.t.Fatalf("unsubscribe: %v", err)
	}
	if version >= newest {
		return // the stream ends when it ends
	}
	before := h.times("updated " + uri)
	h.call("kept__tick", nil)
	subscribe()
	h.call("kept__tick", nil)
	h.await("updated "+uri, before+1)
	if n := h.times("updated " + uri); n != before+1 {
		h.t.Errorf("%d changes are announced after the subscription had ended, want %d", n, before+1)
	}
}

func (h *hears) listsChange() {
	h.t.Helper()
	wait.Until(h.t, "a change is announced", func() bool { // the first call's process may not be the one that stays
		h.call("kept__grow", nil)
		return h.times("tools") > 0
	})
	for _, kind := range []string{"tools", "prompts", "resources"} {
		h.await(kind, 1)
	}
}

// levels: what the client wants is what the server is asked for, but for what the
// host's own record keeps.
func (h *hears) levels(version string) {
	h.t.Helper()
	for _, one := range []struct{ wants, server string }{{"warning", "info"}, {"debug", "debug"}} {
		for _, tool := range []string{"kept__log", "fresh__log"} {
			meta := mcp.Meta{}
			if version >= newest {
				meta["io.modelcontextprotocol/logLevel"] = one.wants
			} else if err := h.session.SetLoggingLevel(wait.Context(h.t), &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(one.wants)}); err != nil { //nolint:staticcheck // both generations are tested
				h.t.Fatal(err)
			}
			h.mu.Lock()
			h.heard = nil
			h.mu.Unlock()
			if said := h.call(tool, meta); !strings.HasPrefix(said, one.server) {
				h.t.Errorf("%s: the server was asked for the level %s, want %s", tool, said, one.server)
			}
			h.await("at emergency", 1)
			if debug := h.times("at debug"); h.times("at warning") != 1 || debug != map[string]int{"debug": 1}[one.wants] {
				h.t.Errorf("%s at %s: heard %q", tool, one.wants, h.heard)
			}
		}
	}
}

// rootsChange: only clients and servers of before 2026-07-28 have that. What the call
// is not granted is cut from the roots.
func (h *hears) rootsChange(version, generation string) {
	h.t.Helper()
	h.client.AddRoots(&mcp.Root{URI: "file:///not/granted"})
	if said := h.call("kept__roots", nil); said != "" {
		h.t.Errorf("the server is given %s", said)
	}
	if version >= newest || generation == "new" {
		return
	}
	h.client.AddRoots(&mcp.Root{URI: "file:///another"})
	wait.Until(h.t, "the server is told", func() bool { return h.call("kept__changes", nil) != "0" })
}
