package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/cli/mcpclients"
)

// What mcp install shows has the entry, and nothing of other servers' secrets.
func TestChangesShowNoSecrets(t *testing.T) {
	for _, c := range []struct{ name, client, before, want string }{
		{"comma", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {\"env\": {\"KEY\": \"sk\"}}\n  }\n}\n", "-…\n+…,\n+    \"toolhost\": {\n"},
		{"comment", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {\"env\": {}} // sk\n  }\n}\n", "-…\n+…,…\n+    \"toolhost\": {\n"},
		{"neighbour on many lines", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"env\": {\"KEY\": \"sk\"}\n    }\n  }\n}\n", "+    },\n+    \"toolhost\": {\n"},
		{"one line", "claude-code", `{"mcpServers":{"a":{"env":{"KEY":"sk"}}},"b":"sk"}`, "+…,\n"},
		{"one line without servers", "claude-code", `{"b":"sk"}`, "+…,\n"},
		{"one line before", "claude-code", `{"mcpServers":{"toolhost":{"command":"/b/old","type":"stdio","args":["mcp"]},"a":{"env":{"KEY":"sk"}}}}`, `-…"command":"/b/old","type":"stdio","args":["mcp"…` + "\n" + `+…"command":"/b/toolhost","type":"stdio","args":["mcp", "x"…` + "\n"},
		{"space at the end", "cursor", `{"mcpServers":{"a":{"env":{"KEY":"sk"}} }}`, "+…,\n"},
		{"a quote in a comment", "cursor", `{"mcpServers":{"a":{"env":{"KEY":"sk"}}/*"*/ }}`, "toolhost"},
		{"path", "cursor", "{\"mcpServers\": {\"toolhost\": {\n  \"command\": \"/old/toolhost\", // sk\n  \"args\": [\"mcp\", \"x\"]}}}", "-  \"command\": \"/old/toolhost\"…\n+  \"command\": \"/b/toolhost\"…\n"},
		{"no line break at the end", "codex", "[mcp_servers.a.env]\nKEY = \"sk\"", "@@\n+\n+[mcp_servers.toolhost]\n"},
		{"http", "codex", "[mcp_servers.toolhost]\nurl = \"x\"\n[mcp_servers.a.env]\nKEY = \"sk\"\n", "-url = \"x\"\n+command = '/b/toolhost'\n"},
		{"runes", "cursor", `{"mcpServers":{"toolhost":{"command":"/é","args":["mcp","x"]}}}`, `-…"command":"/é"…`},
	} {
		client, err := mcpclients.Named(c.client)
		if err != nil {
			t.Fatal(err)
		}
		after, err := client.Set([]byte(c.before), "toolhost", mcpclients.Entry{Command: "/b/toolhost", Args: []string{"mcp", "x"}})
		if err != nil {
			t.Fatal(c.name, err)
		}
		path := "f.json"
		if c.client == "codex" {
			path = "f.toml"
		}
		got := changes(path, []byte(c.before), after)
		if strings.Contains(got, "sk") || !strings.Contains(got, c.want) {
			t.Errorf("%s: shown is\n%s\nwant %s", c.name, got, c.want)
		}
	}
}
