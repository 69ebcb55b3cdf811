package daemon

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// With the short list every connection sees the same tools, before and after a
// reload, and what the configuration has is found and called by them.
func TestShortListOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  old: {command: [echo, old], readOnly: true}\nmcp: {toolList: search}\n")
	d := w.daemon()
	want := []string{"call_destructive", "call_read", "call_write", "find_tool", "session_status"}
	sessions := []*mcpsdk.ClientSession{w.mcpClient(mcpVersions[0], nil), w.mcpClient(mcpVersions[1], nil)}
	lists := func() {
		for _, session := range sessions {
			if names := slices.Sorted(slices.Values(w.offered(session))); !slices.Equal(names, want) {
				t.Errorf("tools %v", names)
			}
		}
	}
	call := func(name, arguments string) string {
		result, err := sessions[0].CallTool(wait.Context(t), &mcpsdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		return mcpText(result)
	}
	lists()
	if got := call("call_read", `{"name":"old"}`); got != "old\n" {
		t.Errorf("%q", got)
	}
	if got := call("call_write", `{"name":"old"}`); !strings.Contains(got, "use call_read") {
		t.Errorf("%q", got)
	}
	w.configure("  new: {command: [echo, new], destructive: true, mode: allow}\nmcp: {toolList: search}\n")
	d.signal(syscall.SIGHUP)
	wait.Until(t, "the new tool is found", func() bool { return strings.Contains(call("find_tool", `{"query":"new"}`), `"call_destructive"`) })
	lists()
	if got := call("call_destructive", `{"name":"new"}`); got != "new\n" {
		t.Errorf("%q", got)
	}
	if got := call("call_read", `{"name":"old"}`); !strings.Contains(got, `no tool "old"`) {
		t.Errorf("%q", got)
	}
}

// What servers have beside tools is declared before there is any: a reload may bring the
// first one, and what a client was told at first stays.
func TestTheFirstServerMayComeLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  own: {command: [echo]}\n")
	w.daemon()
	for _, version := range mcpVersions {
		has := w.mcpClient(version, nil).InitializeResult().Capabilities
		if has.Prompts == nil || has.Resources == nil || has.Completions == nil {
			t.Errorf("%s: %+v", version, has)
		}
	}
}
