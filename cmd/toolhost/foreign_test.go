package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/pty"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// hostile is a name that would pass for a line, or a column, of ours.
const hostile = "a\nsearch\t-\tread-only\tharmless"

// No text of a plugin is more than its own cell of a table, or endless.
func TestTablesOfHostileTools(t *testing.T) {
	t.Parallel()
	schema, err := json.Marshal(map[string]any{"properties": map[string]any{hostile: map[string]string{"type": "string"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	err = printTools(&got, []toolInfo{
		{Name: hostile, InputSchema: schema, Claims: []string{}, Description: "x\ty"},
		{Name: "long", Claims: []string{}, Description: strings.Repeat("d", 1<<20)},
	})
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if err != nil || len(lines) != 3 || len(lines[2]) > 1000 {
		t.Fatalf("%v, %d lines: %.1000q", err, len(lines), got.String())
	}
	for _, want := range []string{`a\nsearch\t-\tread-only\tharmless  [a\nsearch`, `x\ty`} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("%q lacks %q", lines[1], want)
		}
	}
}

func TestErrorsNameHostileTools(t *testing.T) {
	t.Parallel()
	names := []string{hostile}
	for range 100 {
		names = append(names, strings.Repeat("b", 1000))
	}
	var got strings.Builder
	exit.Tell(&got, "toolhost", severalTools("./x", names))
	if text := got.String(); strings.Count(text, "\n") != 1 || len(text) > 2000 || !strings.HasSuffix(text, "… and 89 more\n") {
		t.Errorf("%q", text)
	}
}

// Everything that is wrong with a file has a line, of its own making.
func TestConfigErrorsAreALineEach(t *testing.T) {
	t.Parallel()
	path := configOf(t, "\"a\\nok: forged\\r\": 1\nzzz: 2\n")
	_, err := config.Load(config.Options{Path: path})
	var got, long strings.Builder
	exit.Tell(&got, "toolhost", configError(err))
	if err := validateConfig(&long, path, false); err == nil {
		t.Error("it is valid")
	}
	for _, test := range []struct {
		text  string
		lines int
	}{{got.String(), 2}, {long.String(), 6}} {
		if strings.Count(test.text, "\n") != test.lines || strings.ContainsAny(test.text, "\r") || !strings.Contains(test.text, "zzz") {
			t.Errorf("want %d lines:\n%q", test.lines, test.text)
		}
	}
}

// What a terminal would obey is escaped in JSON too, there and nowhere else.
func TestJSONOnATerminal(t *testing.T) {
	wholeSystem(t)
	t.Parallel()
	const obeyed, escaped = "\u009b2J\u202e", `\u009b2J\u202e`
	for name, args := range map[string][]string{
		"result": {"exec", "--json", "--", "printf", obeyed},
		"events": {"exec", "--events", "--", "printf", obeyed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pty.New(t)
			cmd := exec.CommandContext(wait.Context(t), testBinary(t), append([]string{asToolhost}, args...)...)
			p.Attach(cmd)
			_ = cmd.Run() // only what it says counts
			p.Expect(t, escaped, 1)
			if strings.ContainsAny(p.Screen(), "\u009b\u202e") {
				t.Errorf("the terminal has %q", p.Screen())
			}
			cmd = exec.CommandContext(wait.Context(t), testBinary(t), append([]string{asToolhost}, args...)...)
			if out, _ := cmd.CombinedOutput(); !bytes.Contains(out, []byte(obeyed)) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func configOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
