package fleetops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// What each key of a tool is to its calls on workers: an example, and the name by which
// they are refused where workers cannot do that. A new key fails here until it is known
// what becomes of it.
var keysOnWorkers = map[string]struct{ example, refused string }{
	"plugin": {"plugin: PLUGIN", ""}, "tool": {"plugin: PLUGIN\n    tool: x", ""}, "args": {"plugin: PLUGIN\n    args: [x]", ""},
	"command": {"command: [x]", ""}, "shell": {"command: 'echo x'\n    shell: true", ""}, "params": {"command: [x, '{a}']\n    params: {a: {type: integer}}", ""},
	"stdin": {"command: [x]\n    stdin: '{a}'", ""}, "format": {"command: [x]\n    format: json", ""}, "exitCodes": {"command: [x]\n    exitCodes: {1: ok}", ""},
	"timeoutArgument": {"command: [x, '{a}']\n    params: {a: {type: integer}}\n    timeoutArgument: a", ""},
	"mcp":             {"mcp: [x]", ""}, "prefix": {"mcp: [x]\n    prefix: y", ""}, "pin": {"mcp: [x]\n    pin: false", ""}, "startTimeout": {"mcp: [x]\n    startTimeout: 9s", ""},
	"keep":  {"mcp: [x]\n    keep: true", "what a kept MCP server announces (keep)"},
	"tools": {"mcp: [x]\n    tools: {a: {memory: 64MiB}}", ""},
	"class": {"command: [x]\n    class: c", ""}, "title": {"command: [x]\n    title: y", ""}, "description": {"command: [x]\n    description: y", ""},
	"sha256": {"command: [x]\n    sha256: 0123456789012345678901234567890123456789012345678901234567890123", ""},
	"mode":   {"command: [x]\n    mode: ask", ""}, "deny": {"command: [x, '{a}']\n    deny: {a: [y]}", ""}, "ask": {"command: [x, '{a}']\n    ask: {a: [y]}", ""},
	"destructive": {"command: [x]\n    destructive: true", ""}, "readOnly": {"command: [x]\n    readOnly: true", ""}, "idempotent": {"command: [x]\n    idempotent: true", ""},
	"concurrency": {"command: [x]\n    concurrency: exclusive", ""}, "running": {"command: [x]\n    running: 2", "a pool (running)"},
	"prestart": {"plugin: PLUGIN\n    prestart: 2", ""}, "where": {"command: [x]\n    where: {gpu: a100}", ""},
	"turns": {"plugin: PLUGIN\n    turns: child", "turns of its own (turns)"}, "repeatable": {"command: [x]\n    repeatable: true", ""},
	"timeout": {"command: [x]\n    timeout: 9s", ""}, "minTimeout": {"command: [x]\n    minTimeout: 2s", ""}, "maxTimeout": {"command: [x]\n    maxTimeout: 9m", ""},
	"soft": {"command: [x]\n    soft: 2s", ""}, "timeouts": {"command: [x]\n    timeouts: {approval: 9s}", ""}, "grace": {"command: [x]\n    grace: 3s", ""}, "stream": {"command: [x]\n    stream: {gap: 9s}", ""},
	"memory": {"command: [x]\n    memory: 64MiB", ""}, "pids": {"command: [x]\n    pids: 9", ""}, "cpu": {"command: [x]\n    cpu: 50%", ""}, "cpuWeight": {"command: [x]\n    cpuWeight: 50", ""},
	"ioWeight": {"command: [x]\n    ioWeight: 50", ""}, "ioMax": {"command: [x]\n    ioMax: {'8:0': {read: 1MiB}}", "limits of I/O by device (ioMax)"},
	"cpuTime": {"command: [x]\n    cpuTime: 9s", ""}, "output": {"command: [x]\n    output: 64KiB", ""}, "outputTotal": {"command: [x]\n    outputTotal: 1MiB", ""}, "spill": {"command: [x]\n    spill: 1MiB", ""},
	"openFiles": {"command: [x]\n    openFiles: 99", ""}, "workspace": {"command: [x]\n    workspace: 9MiB", ""}, "workspaceInodes": {"command: [x]\n    workspaceInodes: 99", ""}, "tmp": {"command: [x]\n    tmp: 9MiB", ""},
	"connections": {"command: [x]\n    connections: 9", ""}, "connectionsTotal": {"command: [x]\n    connectionsTotal: 9", ""}, "sent": {"command: [x]\n    sent: 1MiB", ""}, "received": {"command: [x]\n    received: 1MiB", ""},
	"networkRate": {"command: [x]\n    networkRate: 1MiB", ""}, "connectionIdle": {"command: [x]\n    connectionIdle: 9s", ""}, "connectTimeout": {"command: [x]\n    connectTimeout: 9s", ""},
	"tier": {"command: [x]\n    tier: none", "no sandbox (tier none)"}, "read": {"command: [x]\n    read: [/usr/share]", "files of this machine (read)"},
	"write": {"command: [x]\n    write: [/usr/share]", "files of this machine (write)"}, "network": {"command: [x]\n    network: [example.com]", ""},
	"strict": {"command: [x]\n    strict: true", ""}, "require": {"command: [x]\n    require: [landlock]", ""}, "allow": {"command: [x]\n    allow: [sharedUid]", ""},
	"env": {"command: [x]\n    env: {A: b}", ""}, "dir": {"command: [x]\n    read: [/usr/share]\n    dir: /usr/share", "a working directory of this machine (dir)"},
	"data": {"command: [x]\n    data: true", "a workspace that stays (data)"}, "secrets": {"command: [x]\n    secrets: {A: {secret: s}}", ""},
}

// keysOfTools are those of the configuration's schema, without systemd's names for them.
func keysOfTools(t *testing.T) (keys []string) {
	t.Helper()
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for key := range schema.Defs["tool"].Properties {
		if key[0] >= 'a' {
			keys = append(keys, key)
		}
	}
	if len(keys) < 60 {
		t.Fatalf("the schema has %d keys of tools", len(keys))
	}
	return keys
}

func TestEachKeyOnWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plugin := filepath.Join(dir, "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range keysOfTools(t) {
		known, ok := keysOnWorkers[key]
		if !ok {
			t.Errorf("it is not known what becomes of %s on a worker: have it done there, or refused by name (package portable), and say which here", key)
			continue
		}
		loaded := loadFleet(t, dir, strings.ReplaceAll(known.example, "PLUGIN", plugin))
		err := CheckTools(loaded)
		switch {
		case known.refused == "" && err != nil:
			t.Errorf("%s: %v", key, err)
		case known.refused != "" && (err == nil || !strings.Contains(err.Error(), known.refused)):
			t.Errorf("%s: %v, want %q", key, err, known.refused)
		}
		loaded.Fleet.Local = "" // both machines
		warnings := strings.Join(Warnings(loaded, loaded.Tools[0]), "\n")
		if known.refused != "" && !(strings.Contains(warnings, "stay on this machine: no worker can do this: ") && strings.Contains(warnings, known.refused)) {
			t.Errorf("%s: %q, want %q", key, warnings, known.refused)
		}
	}
	for key := range keysOnWorkers {
		if !strings.Contains(keysOnWorkers[key].example, key+":") {
			t.Errorf("the example of %s does not use it", key)
		}
	}
}

// That workers write no spill files is said of a tool whose calls would have some.
func TestSpillOnWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for tool, want := range map[string]bool{"command: [x]\n    spill: 1MiB\n    where: {gpu: a100}": true, "command: [x]": false} {
		loaded := loadFleet(t, dir, tool)
		if len(Warnings(loaded, loaded.Tools[0])) > 0 {
			t.Errorf("%s: a warning without dirs.spill", tool)
		}
		loaded.Config.SpillDir = dir
		if got := strings.Join(Warnings(loaded, loaded.Tools[0]), ""); strings.Contains(got, "(spill): workers write none") != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

// A tool that is for workers is told of where the configuration has none.
func TestWhereWithoutAFleet(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]bool{"command: [x]\n    where: {gpu: a100}": true, "command: [x]": false} {
		loaded := loadFleet(t, t.TempDir(), tool)
		loaded.Fleet = config.Fleet{}
		if got := strings.Join(Warnings(loaded, loaded.Tools[0]), ""); strings.Contains(got, "the configuration has no fleet") != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

func loadFleet(t *testing.T, dir, tool string) *config.Loaded {
	t.Helper()
	path := filepath.Join(dir, "toolhost.yaml")
	text := "fleet: {listen: '127.0.0.1:7420', local: never}\nsecrets: {s: {file: " + path + "}}\nclasses: {c: {memory: 64MiB}}\ntools:\n  t:\n    " + tool + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return loaded
}
