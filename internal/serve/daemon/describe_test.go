package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// hung makes a plugin that notes each start of it, and never says a word.
func (w *world) hung(name string) (plugin string) {
	w.t.Helper()
	plugin = filepath.Join(w.dir, name)
	script := fmt.Sprintf("#!/bin/sh\necho started >>%s.log\nexec sleep 60\n", plugin)
	if err := os.WriteFile(plugin, []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return plugin
}

// starts counts those of a plugin that hung made.
func (w *world) starts(name string) int {
	raw, _ := os.ReadFile(filepath.Join(w.dir, name+".log"))
	return strings.Count(string(raw), "started")
}

func (w *world) batch(turnID string, calls ...api.Call) []*api.Result {
	w.t.Helper()
	results, err := w.client.Run(wait.Context(w.t), turnID, calls)
	if err != nil {
		w.t.Fatal(err)
	}
	return results
}

// What policy refuses is not run to be described: neither in a batch nor for a
// list.
func TestADeniedToolIsNeverRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.configure("  denied: {plugin: " + w.hung("denied") + ", tier: none, mode: deny, description: Never.}\n" +
		"  asked: {plugin: " + w.hung("asked") + ", tier: none, mode: ask}\n" +
		"  server: {mcp: [" + w.hung("server") + "], tier: none, mode: deny}\n" +
		"  capped: {plugin: " + w.hung("capped") + ", tier: none}\n")
	w.daemon()
	begun, err := w.client.Begin(wait.Context(t), api.TurnSpec{Headless: true, MaxCalls: 5})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range w.batch(begun.TurnID, api.Call{ID: "1", Tool: "denied"}, api.Call{ID: "2", Tool: "asked"}, api.Call{ID: "3", Tool: "server__x"},
		api.Call{ID: "4", Tool: "nosuch"}, api.Call{ID: "5", Tool: "nosuch__x"}, api.Call{ID: "6", Tool: "capped"}) {
		got = append(got, string(r.Status)+"/"+string(r.Reason))
	}
	if want := "denied/policy denied/headless denied/policy invalid_args/call invalid_args/call denied/turn_budget"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if w.starts("capped")+w.starts("asked") > 0 {
		t.Error("a tool was run for a call that was refused")
	}
	if err := os.Remove(filepath.Join(w.dir, "capped")); err != nil { // so that the list waits for nothing
		t.Fatal(err)
	}
	list, err := w.client.Tools(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Name == "denied" && (tool.Mode != "deny" || tool.Description != "Never.") || tool.Name == "server__x" {
			t.Errorf("listed: %+v", tool)
		}
	}
	if w.starts("denied")+w.starts("server") > 0 {
		t.Error("a denied tool was run")
	}
}

// Tools that hang hold up their own calls only, are described once for all who
// want them, and then rest.
func TestAHungToolHoldsUpItsOwnCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	added, calls := "", []api.Call{}
	for i := range 9 {
		name := fmt.Sprint("hung", i)
		added += "  " + name + ": {plugin: " + w.hung(name) + ", tier: none, timeout: 5s}\n"
		calls = append(calls, api.Call{ID: name, Tool: name}, api.Call{ID: name + "b", Tool: name})
	}
	w.configure(added)
	w.daemon()
	hung := make(chan []*api.Result, 1)
	go func() { hung <- w.batch(w.begin(), calls...) }()
	wait.Until(t, "all hang", func() bool {
		for i := range 9 {
			if w.starts(fmt.Sprint("hung", i)) == 0 {
				return false
			}
		}
		return true
	})
	quick := append([]api.Call{{ID: "h", Tool: "hung0"}}, api.Call{ID: "work", Tool: "work", Arguments: []byte(`{}`)})
	id := w.begin()
	both := make(chan []*api.Result, 1)
	go func() { both <- w.batch(id, quick...) }()
	wait.Until(t, "only the one that hangs is under way", func() bool {
		info, err := w.client.Turn(wait.Context(t), id)
		return err == nil && len(info.CurrentTools) == 1 && info.CurrentTools[0].CallID == "h"
	})
	if r := <-both; r[0].Status != api.StatusTimeout || !r[1].OK() {
		t.Errorf("%s and %s, want timeout and ok", r[0].Status, r[1].Status)
	}
	for _, r := range <-hung {
		if r.Status != api.StatusTimeout {
			t.Errorf("%s: %s", r.CallID, r.Message)
		}
	}
	again := w.batch(w.begin(), calls...)
	for i, r := range again {
		if r.Status != api.StatusTimeout || !strings.Contains(r.Message, "it is tried again in") || r.Timing.ElapsedMs > 0 {
			t.Errorf("%s: %s after %d ms: %s", r.CallID, r.Status, r.Timing.ElapsedMs, r.Message)
		}
		if n := w.starts(fmt.Sprint("hung", i/2)); n != 1 {
			t.Errorf("%s was started %d times", r.Tool, n)
		}
	}
}

// What has failed is asked anew once its file is another.
func TestAMendedToolIsAskedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	broken := filepath.Join(w.dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.configure("  broken: {plugin: " + broken + "}\n")
	w.daemon()
	for _, want := range []string{"not a toolhost tool", "it is tried again in"} {
		if r := w.batch(w.begin(), api.Call{ID: "1", Tool: "broken"})[0]; r.Status != api.StatusStartFailed || !strings.Contains(r.Message, want) {
			t.Errorf("%s: %s, want %s", r.Status, r.Message, want)
		}
	}
	self, _ := os.Executable()
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, broken); err != nil {
		t.Fatal(err)
	}
	w.mustRun(w.begin(), "broken", workArgs{})
}

// Who asks for one tool waits for no other, and runs none.
func TestOneToolIsListedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	broken := filepath.Join(w.dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.configure("  hung: {plugin: " + w.hung("hung") + ", tier: none}\n  server: {mcp: [" + w.hung("server") + "], tier: none}\n" +
		"  greet: {command: [echo, \"{name}\"], params: {name: {}}}\n  broken: {plugin: " + broken + ", tier: none}\n")
	w.daemon()
	for name, want := range map[string]string{"greet": "1 0", "nosuch": "0 0", "broken": "0 1"} {
		list, err := w.client.Tool(wait.Context(t), name)
		if got := fmt.Sprint(len(list.Tools), " ", len(list.Problems)); err != nil || got != want {
			t.Errorf("%s: %s tools and problems, want %s: %+v, %v", name, got, want, list, err)
		}
	}
	if w.starts("hung")+w.starts("server") > 0 {
		t.Error("another tool was run")
	}
}
