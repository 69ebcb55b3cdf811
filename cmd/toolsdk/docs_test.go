package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

const tutorial = "../../docs/tool-authors.md"

// blocks are the fenced blocks of a language in the tutorial.
func blocks(t *testing.T, language string) (list []string) {
	t.Helper()
	raw, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(raw)
	for {
		_, after, found := strings.Cut(rest, "\n```"+language+"\n")
		if !found {
			return list
		}
		block, after, closed := strings.Cut(after, "\n```\n")
		if !closed {
			t.Fatalf("a block of %s has no end", language)
		}
		list, rest = append(list, block), after
	}
}

// The tutorial's commands are run in its order, in one shell, and must say what
// it shows: "..." stands for any text, or for any lines, and numbers may differ.
func TestTheTutorialsCommands(t *testing.T) {
	stage.Of(t, "tutorials")
	t.Parallel()
	needGo(t)
	bin := commandsFolder(t)
	var script strings.Builder
	var expected []string
	for _, block := range blocks(t, "console") {
		for line := range strings.Lines(block + "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				script.WriteString("echo '" + marker + "'\n" + command)
				expected = append(expected, "")
			} else {
				expected[len(expected)-1] += line
			}
		}
	}
	if len(expected) < 10 {
		t.Fatalf("only %d commands found", len(expected))
	}
	parts := strings.Split(bash(t, bin, script.String()), marker+"\n")[1:]
	for i, want := range expected {
		if i >= len(parts) {
			t.Fatalf("command %d was not reached", i+1)
		}
		if !pattern(want).MatchString(parts[i]) {
			t.Errorf("the tutorial says\n%s\nand it is\n%s", want, parts[i])
		}
	}
}

// marker stands before each command's output.
const marker = "-- next command --"

// bash runs the script to its end.
func bash(t *testing.T, bin, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = t.TempDir()
	// A make that runs these tests would have the tutorial's say that it is below it.
	cmd.Env = append(os.Environ(), "MAKELEVEL=", "MAKEFLAGS=", "PATH="+toolsdkDir(t)+":"+bin+":"+os.Getenv("PATH"), "EXAMPLES="+bin)
	for name, value := range goEnvironment(t) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the tutorial's commands: %v\n%s", err, out)
	}
	return string(out)
}

// toolsdkDir has this binary, as toolsdk.
func toolsdkDir(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("toolsdk")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

var (
	numbers = regexp.MustCompile(`[0-9]+(\\\.[0-9]+)?([a-zµ]*s|[KMG]?i?B)?`)
	blanks  = regexp.MustCompile(`[ \t]+`)
)

// pattern makes a regular expression of what a command says.
func pattern(want string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimRight(want, "\n"))
	text = numbers.ReplaceAllString(text, `[0-9.]+([a-zµ0-9.]*s|[KMG]?i?B)?`)
	text = blanks.ReplaceAllString(text, `[ \t]*`)
	text = strings.ReplaceAll(text, `\.\.\.`, `(?s:.*)`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, "\n", `\s*\n\s*`) + `\s*$`)
}

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		want, got string
		match     bool
	}{
		{"a\n...\nb\n", "a\nx\ny\nb\n", true},
		{"a\n...\nb\n", "a\nx\ny\nc\n", false},
		{"ok: 12ms of 30s, cpu 8ms, memory 4MiB\n", "ok: 1.5s of 30s, cpu 10ms, memory 3.996MiB\n", true},
		{"ok: 12ms\n", "timeout: 12ms\n", false},
		{"rc 124\n", "rc 124\n", true},
		{"a  b\n", "a b\n", true},
		{"", "", true},
		{"", "x\n", false},
	} {
		if got := pattern(test.want).MatchString(test.got); got != test.match {
			t.Errorf("%q on %q: %v", test.want, test.got, got)
		}
	}
}

// The first Go block is a program, the others are declarations beside it. All
// of them together compile, and their tests pass.
func TestTheTutorialsCode(t *testing.T) {
	stage.Of(t, "tutorials")
	t.Parallel()
	needGo(t)
	code := blocks(t, "go")
	if len(code) < 4 {
		t.Fatalf("only %d blocks found", len(code))
	}
	// Inside of the module, so that its go.mod counts, and out of the sight of
	// all that looks at ./...
	dir, err := os.MkdirTemp("testdata", "tutorial-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	imports := "package main\n\nimport (\n\t\"context\"\n\t\"errors\"\n\t\"testing\"\n\t\"testing/synctest\"\n\t\"time\"\n\n\t\"github.com/toolhost/toolhost/plugin\"\n\t\"github.com/toolhost/toolhost/plugin/plugintest\"\n)\n\n"
	for name, text := range map[string]string{"main.go": code[0], "rest_test.go": imports + strings.Join(code[1:], "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-count=1", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
