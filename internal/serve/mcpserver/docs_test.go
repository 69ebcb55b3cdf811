package mcpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const (
	docPath    = "../../../docs/mcp-server.md"
	documented = "/home/me/toolhost.yaml"
)

var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// blocks are the document's examples in one language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	return blocksOf(t, docPath, language)
}

func blocksOf(t *testing.T, path, language string) (list []string) {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range block.FindAllStringSubmatch(string(doc), -1) {
		if found[1] == language {
			list = append(list, found[2])
		}
	}
	return list
}

type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// tomlServer reads the few lines of the one example that is not JSON.
var tomlServer = regexp.MustCompile(`(?m)^command = (".*")\nargs = (\[.*\])$`)

func documentedServers(t *testing.T) (list []server) {
	t.Helper()
	for _, text := range blocks(t, "json") {
		var hosts map[string]map[string]server
		if err := json.Unmarshal([]byte(text), &hosts); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, servers := range hosts {
			for _, one := range servers {
				list = append(list, one)
			}
		}
	}
	for _, text := range blocks(t, "toml") {
		var one server
		found := tomlServer.FindStringSubmatch(text)
		if found == nil || json.Unmarshal([]byte(found[1]), &one.Command) != nil || json.Unmarshal([]byte(found[2]), &one.Args) != nil {
			t.Fatalf("no server in %s", text)
		}
		list = append(list, one)
	}
	return list
}

// Every documented client starts a server that offers the documented tools.
func TestDocumentedClients(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, "toolhost.yaml")
	all := blocks(t, "yaml")
	yaml := strings.ReplaceAll(all[0]+all[1], "/home/me", home)
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := documentedServers(t)
	if len(servers) != 4 {
		t.Fatalf("%d clients", len(servers))
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range servers {
		i := slices.Index(one.Args, documented)
		if one.Command != "toolhost" || i < 0 {
			t.Fatalf("%+v", one)
		}
		one.Args[i] = path
		cmd := exec.Command(filepath.Join(dir, one.Command), one.Args...)
		cmd.Env, cmd.Stderr = append(os.Environ(), "TOOLHOST_STATE=none"), os.Stderr
		c := connectTo(t, &mcpsdk.CommandTransport{Command: cmd}, kinds[0], nil)
		listed, err := c.ListTools(wait.Context(t), nil)
		if err != nil || len(listed.Tools) != 3 {
			t.Fatalf("%v, %+v", err, listed)
		}
		r := invoke(t, c, &mcpsdk.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
		if r.IsError || text(r) != "hello Ada\n" {
			t.Error(text(r))
		}
		if r := invoke(t, c, &mcpsdk.CallToolParams{Name: "notes", Arguments: map[string]any{}}); r.IsError || !strings.Contains(text(r), "toolhost.yaml") {
			t.Error(text(r))
		}
	}
}
