package catalog

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// A downloader without network is told apart from a server that is set up wrongly.
func TestDownloadersWithoutNetwork(t *testing.T) {
	failed := supervisor.Verdict{Tool: "a", Status: api.StatusStartFailed, Reason: api.ReasonServer, Message: "[FAILED] It said EAI_AGAIN. Next: correct the server's set-up."}.Result()
	failed.ToolError = &api.ToolError{Message: "it said EAI_AGAIN\nmore"}
	entry := config.Tool{Name: "a", Type: config.TypeMCP, MCP: config.Server{Argv: []string{"npx", "-y", "x"}}}
	r := startFailure(entry, failed)
	const want = "npx downloads what it runs, and the sandbox has no network"
	if !strings.HasPrefix(r.Retry.Hint, want) || !strings.Contains(r.Message, "Next: "+want) || strings.Contains(r.Message, "set-up") || !strings.HasPrefix(r.ToolError.Message, "it said EAI_AGAIN; "+want) || !strings.HasSuffix(r.ToolError.Message, "\nmore") {
		t.Errorf("%+v %+v", r, r.ToolError)
	}
	if failed.ToolError.Message != "it said EAI_AGAIN\nmore" {
		t.Error("the result of others has changed")
	}
	entry.Sandbox.Network = sandbox.NetworkHost
	if r := startFailure(entry, failed); r != failed {
		t.Errorf("with the host's network: %+v", r)
	}
}

// A server that has asked somebody in vain and has no network gets that for its remedy; one
// that fails for another reason, or has a network, does not.
func TestServersWithoutNetwork(t *testing.T) {
	for _, test := range []struct {
		said, network string
		hints         bool
	}{
		{"it wrote to stderr: TypeError: fetch failed", "", true},
		{"it wrote to stderr: getaddrinfo EAI_AGAIN a.example", "", true},
		{"it wrote to stderr: TypeError: fetch failed", sandbox.NetworkHost, false},
		{"it wrote to stderr: cannot find module 'x'", "", false},
	} {
		failed := supervisor.Verdict{Tool: "a", Status: api.StatusStartFailed, Reason: api.ReasonServer, Message: "[FAILED] It failed. Next: correct the server's set-up."}.Result()
		failed.ToolError = &api.ToolError{Message: test.said}
		entry := config.Tool{Name: "a", Type: config.TypeMCP, MCP: config.Server{Argv: []string{"node", "x.js"}}}
		entry.Sandbox.Network = test.network
		r := startFailure(entry, failed)
		if hints := strings.Contains(r.Message, "Next: the server has no network: grant it the names that it asks"); hints != test.hints || (r == failed) == test.hints {
			t.Errorf("%+v: %s", test, r.Message)
		}
	}
}
