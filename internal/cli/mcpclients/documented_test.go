package mcpclients

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// documented is what the documentation of a client says of a server that it starts. Of
// VS Code and Zed the pages were read, of the others copies of their examples.
type documented struct {
	page string
	// user is the file below the home folder on Linux, project a project's.
	user, project string
	// example is a server that runs npx, in the form of the page's example; optional
	// are the members of it that a client does without.
	example  string
	optional []string
}

var documentation = map[string]documented{
	"claude-desktop": {
		page:    "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
		user:    ".config/Claude/claude_desktop_config.json",
		example: `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}}`,
	},
	"claude-code": {
		page: "https://code.claude.com/docs/en/mcp", user: ".claude.json", project: ".mcp.json",
		example:  `{"mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {}}}}`,
		optional: []string{"env"},
	},
	"cursor": {
		page: "https://cursor.com/docs/context/mcp", user: ".cursor/mcp.json", project: ".cursor/mcp.json",
		example:  `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "value"}}}}`,
		optional: []string{"env"},
	},
	"vscode": {
		page: "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
		user: ".config/Code/User/mcp.json", project: ".vscode/mcp.json",
		example:  `{"servers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"KEY": "${input:key}"}}}}`,
		optional: []string{"env"},
	},
	"zed": {
		page: "https://zed.dev/docs/ai/mcp", user: ".config/zed/settings.json", project: ".zed/settings.json",
		example:  `{"context_servers": {"files": {"command": "npx", "args": ["-y", "files"], "env": {}}}}`,
		optional: []string{"env"},
	},
	"codex": {
		page: "https://developers.openai.com/codex/mcp", user: ".codex/config.toml", project: ".codex/config.toml",
		example:  "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\"]\n\n[mcp_servers.files.env]\nKEY = \"value\"\n",
		optional: []string{"env"},
	},
}

// What is written for the server of a documented example is the example, without what is
// optional, in the documented file; and where the example is there, nothing changes.
func TestAsDocumented(t *testing.T) {
	if !slices.Equal(slices.Sorted(maps.Keys(documentation)), slices.Sorted(slices.Values(Names()))) {
		t.Fatalf("documented are %v of %v", slices.Sorted(maps.Keys(documentation)), Names())
	}
	server := Entry{Command: "npx", Args: []string{"-y", "files"}}
	for name, d := range documentation {
		t.Run(name, func(t *testing.T) {
			c, _ := Named(name)
			written, err := c.Set(nil, "files", server)
			if err != nil {
				t.Fatal(err)
			}
			want := decoded(t, c, d.example)
			entry := want[c.key].(map[string]any)["files"].(map[string]any)
			for _, member := range d.optional {
				delete(entry, member)
			}
			if got := decoded(t, c, string(written)); !reflect.DeepEqual(got, want) {
				t.Errorf("written is %v, %s says %v", got, d.page, want)
			}
			if again, err := c.Set([]byte(d.example), "files", server); err != nil || string(again) != d.example {
				t.Errorf("the example becomes %s, %v", again, err)
			}
		})
		t.Run(name+"/file", func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			for _, variable := range []string{"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} {
				t.Setenv(variable, "")
			}
			c, _ := Named(name)
			if file, err := c.UserFile(); err != nil || file != filepath.Join(home, d.user) {
				t.Errorf("the user's file is %s, %v; %s says %s", file, err, d.page, d.user)
			}
			file, err := c.ProjectFile("/p")
			if d.project == "" {
				if err == nil || !strings.Contains(err.Error(), "--project") {
					t.Errorf("a project's file: %s, %v", file, err)
				}
			} else if err != nil || file != filepath.Join("/p", d.project) {
				t.Errorf("a project's file is %s, %v; %s says %s", file, err, d.page, d.project)
			}
		})
	}
}

// decoded is a client's text with its servers.
func decoded(t *testing.T, c Client, text string) map[string]any {
	t.Helper()
	var all map[string]any
	var err error
	if c.toml {
		all, err = readTOML([]byte(text))
	} else {
		err = json.Unmarshal([]byte(text), &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
