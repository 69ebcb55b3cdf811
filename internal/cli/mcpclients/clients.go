// Package mcpclients knows in which files well-known MCP clients keep their servers. It
// puts an entry into such a file without touching the rest of it, and makes a
// toolhost.yaml of what is in one.
package mcpclients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Client is a program that keeps its MCP servers in a file.
type Client struct {
	// Name is the one on the command line, Title the program's own.
	Name, Title string
	// key is where the file has servers by their names.
	key string
	// typed: an entry says that it is of type stdio.
	typed bool
	// comments: the file may have comments and commas behind last items.
	comments bool
	// toml: the file is TOML; all others are JSON.
	toml bool
	// user is the user's file, below the home folder, or below the folder that the
	// variable names; project is a project's, below its folder, empty if it has none.
	user, variable, below, project string
}

var clients = []Client{
	{Name: "claude-desktop", Title: "Claude Desktop", key: "mcpServers", user: ".config/Claude/claude_desktop_config.json", variable: "XDG_CONFIG_HOME", below: "Claude/claude_desktop_config.json"},
	{Name: "claude-code", Title: "Claude Code", key: "mcpServers", typed: true, user: ".claude.json", variable: "CLAUDE_CONFIG_DIR", below: ".claude.json", project: ".mcp.json"},
	{Name: "cursor", Title: "Cursor", key: "mcpServers", comments: true, user: ".cursor/mcp.json", project: ".cursor/mcp.json"},
	{Name: "vscode", Title: "VS Code", key: "servers", typed: true, comments: true, user: ".config/Code/User/mcp.json", variable: "XDG_CONFIG_HOME", below: "Code/User/mcp.json", project: ".vscode/mcp.json"},
	{Name: "zed", Title: "Zed", key: "context_servers", comments: true, user: ".config/zed/settings.json", variable: "XDG_CONFIG_HOME", below: "zed/settings.json", project: ".zed/settings.json"},
	{Name: "codex", Title: "Codex", key: "mcp_servers", toml: true, user: ".codex/config.toml", variable: "CODEX_HOME", below: "config.toml", project: ".codex/config.toml"},
}

// Names are those of all clients, as the command line has them.
func Names() (names []string) {
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// Named is the client of this name.
func Named(name string) (Client, error) {
	for _, c := range clients {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("unknown client %q: there are %s", name, strings.Join(Names(), ", "))
}

// UserFile is where the client keeps the user's servers.
func (c Client) UserFile() (string, error) {
	if c.variable != "" {
		if dir := os.Getenv(c.variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, c.below), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the file of %s: %w: name it with --file", c.Title, err)
	}
	return filepath.Join(home, c.user), nil
}

// ProjectFile is where it keeps those of a project.
func (c Client) ProjectFile(dir string) (string, error) {
	if c.project == "" {
		return "", fmt.Errorf("%s has no servers of a project: leave out --project", c.Title)
	}
	return filepath.Join(dir, c.project), nil
}

// Entry is a server that a client starts.
type Entry struct {
	Command string
	Args    []string
}

// Set is the text of a client's file with the entry of this name. Other entries, other
// keys of this one that do not contradict it, comments, order and white space stay. An empty text is
// that of a file that does not exist. If nothing changes the text comes back.
func (c Client) Set(text []byte, name string, e Entry) ([]byte, error) {
	set := c.setJSON
	if c.toml {
		set = c.setTOML
	}
	rest, marked := bytes.CutPrefix(text, mark)
	out, err := set(rest, name, e)
	if err != nil || !marked {
		return out, err
	}
	return slices.Concat(mark, out), nil
}

// mark is the byte order mark with which some editors begin a file. It stays.
var mark = []byte("\ufeff")

// Shown is the entry of this name, in the file's language, without comments and with an
// ellipsis in place of what may be a secret; empty if the text has none.
func (c Client) Shown(text []byte, name string) []byte {
	f, err := c.servers(text)
	servers, _, _ := members(f.servers)
	if err != nil || servers[name].Value == nil {
		return nil
	}
	entry := masked(servers[name])
	if c.toml {
		return shownTOML(c.key, name, entry)
	}
	var out bytes.Buffer
	key, _ := plain(name)
	_ = json.Indent(&out, entry, "", "  ")
	return fmt.Appendf(nil, "%s: %s\n", key, out.Bytes())
}

// newline is the one that a file has.
func newline(text []byte) string {
	if strings.Contains(string(text), "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// wrongKey is why a file cannot be changed.
func wrongKey(key, want string) error {
	return fmt.Errorf("%q in it is not %s: correct that first", key, cmp.Or(want, "an object"))
}
