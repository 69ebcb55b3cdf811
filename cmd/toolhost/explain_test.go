package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
)

// What only a sandbox enforces is not told as in force where there is none.
func TestExplainWithoutASandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte("limits: {openFiles: 100, tmp: 4MiB, cpuTime: 5s}\ntools: {a: {command: [echo]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const none = "not in force: no sandbox"
	for tier, want := range map[string]map[string]string{
		sandbox.TierNative: {"openFiles": "100", "tmp": "4MiB", "cpuTime": "5s"},
		sandbox.TierNone:   {"openFiles": none, "tmp": none, "cpuTime": "5s"},
	} {
		found := 0
		for _, row := range alsoSet(loaded.Tools[0], tier, "none") {
			if text, ok := want[row.Name]; ok {
				found++
				if row.Value != text || row.From == "" {
					t.Errorf("%s: %+v, want %s", tier, row, text)
				}
			}
		}
		if found != len(want) {
			t.Errorf("%s: %d rows", tier, found)
		}
	}
}

// The settings of a server's tool are listed under their own keys, whether they are set for the tool
// or for its server.
func TestExplainAServersTool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte("tools: {s: {mcp: [server], pids: 9, tools: {read: {timeout: 5s, tmp: 4MiB}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	one := loaded.Tools[0].Of("read")
	one.Name = loaded.Tools[0].Name
	rows, tmp := alsoSet(one, sandbox.TierNone, "none"), ""
	for _, row := range rows {
		if strings.HasPrefix(row.Name, "tools.") {
			t.Errorf("%+v", row)
		}
		if row.Name == "tmp" {
			tmp = row.Value
		}
	}
	if tmp != "not in force: no sandbox" {
		t.Errorf("tmp is %q in %+v", tmp, rows)
	}
	if rows := alsoSet(one, sandbox.TierNative, sandbox.NetworkGrants); !slices.ContainsFunc(rows, func(s setting) bool { return s.Name == "connections" }) {
		t.Errorf("the limits of the network are missing in %+v", rows)
	}
}

// Only a path's own beginning is cut, and nothing of it at the root.
func TestNearer(t *testing.T) {
	for _, test := range []struct{ from, here, want string }{
		{"/srv/toolhost.yaml:3", "/srv", "toolhost.yaml:3"},
		{"class heavy, /srv/a/toolhost.yaml:3", "/srv", "class heavy, a/toolhost.yaml:3"},
		{"tool (/srv/toolhost.yaml:3)", "/srv", "tool (toolhost.yaml:3)"},
		{"/mnt/srv/toolhost.yaml:3", "/srv", "/mnt/srv/toolhost.yaml:3"},
		{"class heavy, /mnt/srv/toolhost.yaml:3", "/srv", "class heavy, /mnt/srv/toolhost.yaml:3"},
		{"/etc/toolhost/toolhost.yaml:3", "/", "/etc/toolhost/toolhost.yaml:3"},
		{"/etc/toolhost/toolhost.yaml:3", "", "/etc/toolhost/toolhost.yaml:3"},
		{"--memory", "/srv", "--memory"},
	} {
		if got := nearer(test.from, test.here); got != test.want {
			t.Errorf("%s in %s: %q, want %q", test.from, test.here, got, test.want)
		}
	}
}
