package main

import (
	"os"
	"path/filepath"
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
