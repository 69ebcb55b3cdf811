//go:build !nofleet

package main

import (
	"strings"
	"testing"
)

// A tool is explained whose command and files its workers have, and this machine has not.
func TestExplainWhatWorkersHave(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"toolhost.yaml": `
fleet: {listen: "127.0.0.1:7420", local: never}
dirs: {runtime: run}
tools:
  name:  {command: [no-such-command], memory: 64MiB, readOnly: true}
  path:  {command: [/no/such/command], where: {gpu: a100}}
  files: {command: [ls], where: {gpu: a100}, read: [/no/models], write: [/no/cache], dir: /no/models}
`})
	for tool, want := range map[string][]string{
		"name": {"64MiB", "no-such-command", "claims    read-only"}, "path": {"/no/such/command", "a100"}, "files": {"/no/models", "/no/cache", "a100"},
	} {
		out := string(toolhost(t, "explain", "--config", dir+"/toolhost.yaml", tool))
		for _, text := range append(want, tool+"\n", "enforced") {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in %s", tool, text, out)
			}
		}
	}
}
