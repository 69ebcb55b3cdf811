package mcpsuite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// ownParser is a program that reads what toolhost mcp install has written.
type ownParser struct {
	client, program string // below node_modules
	before          string // its file, as it was
	file            string // below the home folder
	// read has the program say what it has read of the entry.
	read func(t *testing.T, program, home string) (command string, args []string)
	// connects has it start the entry's server.
	connects func(t *testing.T, program, home string)
}

var ownParsers = []ownParser{
	{
		client: "codex", program: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", file: ".codex/config.toml",
		before: "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n",
		read: func(t *testing.T, program, home string) (string, []string) {
			var said struct {
				Enabled   bool
				Transport struct {
					Type, Command string
					Args          []string
				}
			}
			if err := json.Unmarshal(ownOutput(t, home, program, "mcp", "get", "toolhost", "--json"), &said); err != nil || !said.Enabled || said.Transport.Type != "stdio" {
				t.Errorf("%v: %+v", err, said)
			}
			return said.Transport.Command, said.Transport.Args
		},
	},
	{
		client: "claude-code", program: "@anthropic-ai/claude-code-linux-x64/claude", file: ".claude.json",
		before: "{\n  \"numStartups\": 1,\n  \"mcpServers\": {\"other\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:1/mcp\"}}\n}\n",
		read: func(t *testing.T, program, home string) (command string, args []string) {
			for line := range strings.Lines(string(ownOutput(t, home, program, "mcp", "get", "toolhost"))) {
				switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
				case "Command":
					command = value
				case "Args":
					args = strings.Split(value, " ")
				case "Type":
					if value != "stdio" {
						t.Errorf("it is of type %s", value)
					}
				}
			}
			return command, args
		},
		connects: func(t *testing.T, program, home string) {
			if said := string(ownOutput(t, home, program, "mcp", "list")); !strings.Contains(said, "toolhost: ") || !strings.Contains(said, "Connected") {
				t.Errorf("it does not connect: %s", said)
			}
		},
	},
}

func ownOutput(t *testing.T, home, program string, args ...string) []byte {
	t.Helper()
	run := exec.CommandContext(wait.Context(t), program, args...)
	run.Dir, run.Stderr = home, os.Stderr
	run.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+filepath.Join(home, ".codex"), "CLAUDE_CONFIG_DIR=", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(program), args, err, out)
	}
	return out
}

// TestOwnParsers has each entry that is written read by the program that it is for, where
// that is on npm.
func TestOwnParsers(t *testing.T) {
	stage.Of(t, "clients")
	modules := filepath.Join(npm.Folder(t, "testdata/programs"), "node_modules")
	for _, one := range ownParsers {
		t.Run(one.client, func(t *testing.T) {
			home := t.TempDir()
			if err := binaries.Into(home, "toolhost"); err != nil {
				t.Fatal(err)
			}
			toolhost, config := filepath.Join(home, "toolhost"), filepath.Join(home, "a & b.yaml")
			for path, text := range map[string]string{config: "tools: {greet: {command: [echo, hello]}}\n", filepath.Join(home, one.file): one.before} {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ownOutput(t, home, toolhost, "mcp", "install", one.client, "--config", config, "--file", filepath.Join(home, one.file), "--yes")
			program := filepath.Join(modules, one.program)
			command, args := one.read(t, program, home)
			if want := []string{"mcp", "--config", config}; command != toolhost || strings.Join(args, " ") != strings.Join(want, " ") {
				t.Errorf("it reads %s %q, want %s %q", command, args, toolhost, want)
			}
			if one.connects != nil {
				one.connects(t, program, home)
			}
			if kept, err := os.ReadFile(filepath.Join(home, one.file)); err != nil || !slices.ContainsFunc([]string{`"other"`, "mcp_servers.other"}, func(part string) bool { return strings.Contains(string(kept), part) }) {
				t.Errorf("the other server is lost: %v, %s", err, kept)
			}
		})
	}
}
