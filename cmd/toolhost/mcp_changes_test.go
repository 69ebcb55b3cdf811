package main

import (
	"testing"

	"github.com/toolhost/toolhost/internal/cli/mcpclients"
)

// What mcp install shows is what changes of its entry, and nothing that may be a secret.
func TestChangesShowNoSecrets(t *testing.T) {
	const made = "+\"toolhost\": {\n+  \"command\": \"/b/toolhost\",\n+  \"args\": [\n+    \"mcp\",\n+    \"x\"\n+  ]\n+}\n"
	for _, c := range []struct{ name, client, before, want string }{
		{"first", "cursor", "", made},
		{"beside another", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {\"env\": {\"KEY\": \"sk\"}} // sk\n  }\n}\n", made},
		{"on one line", "cursor", `{"mcpServers":{"a":{"env":{"KEY":"sk"}}},"b":"sk"}`, made},
		{
			"path", "cursor", "\ufeff{\"mcpServers\": {\"toolhost\": {\n  \"command\": \"/é\", // sk\n  \"args\": [\"mcp\", \"x\"], \"env\": {\"KEY\": \"sk\"},}}}",
			"-  \"command\": \"/é\",\n+  \"command\": \"/b/toolhost\",\n",
		},
		{
			"arguments", "claude-code", `{"mcpServers":{"toolhost":{"command":"/b/toolhost","type":"stdio","args":["mcp"]},"a":{"env":{"KEY":"sk"}}}}`,
			"-    \"mcp\"\n+    \"mcp\",\n+    \"x\"\n",
		},
		{
			"secrets", "cursor", `{"mcpServers":{"toolhost":{"url":"https://u:sk@x/","headers":{"Authorization":"Bearer sk","N":5},"args":["--token","sk","-v"],"env":{"KEY":"sk"}}}}`,
			"-  \"url\": \"…\",\n-  \"headers\": {\n-    \"Authorization\": \"…\",\n-    \"N\": \"…\"\n-  },\n-    \"--token\",\n-    \"…\",\n-    \"-v\"\n+    \"mcp\",\n+    \"x\"\n-  }\n+  },\n+  \"command\": \"/b/toolhost\"\n",
		},
		{
			"secrets in TOML", "codex", "[mcp_servers.toolhost]\nurl = \"x\"\nbearer_token = \"sk\"\n[mcp_servers.toolhost.http_headers]\nKEY = \"sk\"\n",
			"-bearer_token = '…'\n-url = 'x'\n-\n-[mcp_servers.toolhost.http_headers]\n-KEY = '…'\n+args = ['mcp', 'x']\n+command = '/b/toolhost'\n",
		},
		{"control characters", "cursor", `{"mcpServers":{"toolhost":{"command":"/b/toolhost","args":["\u202e\u001b"]}}}`, "-    \"\\u202e\\u001b\"\n+    \"mcp\",\n+    \"x\"\n"},
		{"table", "codex", "[mcp_servers.a.env]\nKEY = \"sk\"", "+[mcp_servers.toolhost]\n+args = ['mcp', 'x']\n+command = '/b/toolhost'\n"},
		{
			"http", "codex", "[mcp_servers.toolhost]\nurl = \"x\"\n[mcp_servers.toolhost.env]\nKEY = \"sk\"\n[mcp_servers.a.env]\nKEY = \"sk\"\n",
			"-url = 'x'\n+args = ['mcp', 'x']\n+command = '/b/toolhost'\n",
		},
	} {
		client, err := mcpclients.Named(c.client)
		if err != nil {
			t.Fatal(err)
		}
		after, err := client.Set([]byte(c.before), "toolhost", mcpclients.Entry{Command: "/b/toolhost", Args: []string{"mcp", "x"}})
		if err != nil {
			t.Fatal(c.name, err)
		}
		want := "--- f\n+++ f\n@@ toolhost @@\n" + c.want
		if got := changes(client, "toolhost", "f", []byte(c.before), after); got != want {
			t.Errorf("%s: shown is\n%s\nwant\n%s", c.name, got, want)
		}
	}
}
