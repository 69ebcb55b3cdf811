package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/turn/format"
)

// Whatever ids an API gives, a turn gets short ones, each its own; those that
// it can take stay as they are.
func TestTurnCalls(t *testing.T) {
	long := strings.Repeat("é", 200)
	calls := turnCalls([]format.Call{{ID: "a"}, {ID: long}, {ID: long + "2"}, {ID: strings.Repeat("é", 32) + "…2"}, {ID: strings.Repeat("x", maxTurnID)}})
	seen := map[string]bool{}
	for i, c := range calls {
		if c.ID == "" || len(c.ID) > maxTurnID || seen[c.ID] || strings.ToValidUTF8(c.ID, "") != c.ID {
			t.Errorf("call %d has the id %q", i+1, c.ID)
		}
		seen[c.ID] = true
	}
	if calls[0].ID != "a" || len(calls[4].ID) != maxTurnID {
		t.Errorf("ids %q and %q have changed", calls[0].ID, calls[4].ID)
	}
}

// A batch without calls has its results, too, in whatever shape.
func TestResultsOfNoCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"list": "[]", "answer": `{"role":"assistant","content":[{"type":"text","text":"Done."}]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{"[]\n": {filepath.Join(dir, "list")}, "{\"role\":\"user\",\"content\":[]}\n": {"--format", "anthropic", filepath.Join(dir, "answer")}} {
		if got := string(toolhost(t, append([]string{"turn", "--state", "none"}, args...)...)); got != want {
			t.Errorf("turn %s prints %q, want %q", args, got, want)
		}
	}
}

// A call whose files were not all copied to --out is no success, as in run and exec.
func TestTurnThatLosesFiles(t *testing.T) {
	results := []*api.Result{{Status: api.StatusOK}, {Status: api.StatusOK, FilesIncomplete: true}}
	for out, want := range map[string]int{"": exit.OK, "out": exit.Failed} {
		flags := turnFlags{callFlags: callFlags{out: out}}
		if got := exit.Of(flags.turnExit(results)).Code; got != want {
			t.Errorf("--out %q: %d, want %d", out, got, want)
		}
	}
}

// What comes up while calls are shown is printed above them, and waits for a question's end.
func TestWarningsBesideTheView(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	view := present.NewView(file, present.Options{})
	defer view.Close()
	k := &app{flags: &callFlags{}, tells: true}
	k.view.Store(view)
	said := func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	view.Lock()
	k.warn("a\nb")
	if got := said(); got != "" {
		t.Errorf("said %q beside a question", got)
	}
	view.Unlock()
	if got, want := said(), "toolhost: warning: a\\nb\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
