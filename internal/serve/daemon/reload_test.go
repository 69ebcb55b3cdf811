package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func (w *world) tools() map[string]api.Tool {
	w.t.Helper()
	list, err := w.client.Tools(wait.Context(w.t))
	if err != nil || len(list.Problems) > 0 {
		w.t.Fatal(err, list.Problems)
	}
	tools := map[string]api.Tool{}
	for _, tool := range list.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

// A reload changes what the next call is, and not the one that runs.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  old: {command: [echo, old]}\nlimits: {memory: 64MiB}\ntimeouts: {tool_call: {default: 100s}}\n")
	d := w.daemon()
	id, file := w.begin(), filepath.Join(w.dir, "go")
	done := w.launch(id, "work", workArgs{For: file})
	if got := w.tools(); got["old"].Name == "" || *got["work"].TimeoutMs != 100_000 {
		t.Fatalf("tools before: %+v", got)
	}

	w.configure("  new: {command: [echo, new]}\nlimits: {memory: 96MiB}\ntimeouts: {tool_call: {default: 200s}}\nadmission: {running: 3}\nstop: {wait: 7s}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	d.waitLog("setting admission.running has changed")
	got := w.tools()
	if got["old"].Name != "" || got["new"].Name == "" || *got["work"].TimeoutMs != 200_000 {
		t.Errorf("tools after: %+v", got)
	}
	fresh := w.mustRun(w.begin(), "work", workArgs{})
	if fresh.Limits.MemoryBytes != 96<<20 || *fresh.Timing.TimeoutMs != 200_000 {
		t.Errorf("a call after the reload has limits %+v, timeout %d", fresh.Limits, *fresh.Timing.TimeoutMs)
	}
	if o := w.run(w.begin(), api.Call{ID: "1", Tool: "old"}); o.err != nil || o.result.OK() {
		t.Errorf("a tool that is gone: %+v", o)
	}
	w.letGo(file)
	o := w.outcome(done)
	if o.err != nil || !o.result.OK() || o.result.Limits.MemoryBytes != 64<<20 || *o.result.Timing.TimeoutMs != 100_000 {
		t.Errorf("the call that ran: %+v", o)
	}
	if w.left() > 0 {
		t.Errorf("%d processes left", w.left())
	}
}

// A file that has lost its tools is loaded, and that is told.
func TestReloadThatLosesTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	if err := os.WriteFile(w.Config, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if !strings.Contains(d.log.text(), "[WARN]  the configuration has lost tools: removed=2 added=0 left=0 names=\"work, lines\"") {
		t.Error("nothing says that the tools are gone")
	}
}

// A limit that is taken away no longer holds.
func TestReloadTakesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "limits: {memory: 64MiB}\n")
	d := w.daemon()
	w.configure("")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	if r := w.mustRun(w.begin(), "lines", map[string]string{"text": "x"}); r.Limits.MemoryBytes == 64<<20 {
		t.Errorf("limits %+v", r.Limits)
	}
}

// What the operator says of a tool's start holds from a reload on, too.
func TestReloadOfTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	slow := filepath.Join(w.dir, "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := "  slow: {plugin: " + slow + "}\n"
	w.configure(tool)
	d := w.daemon()
	w.configure(tool + "timeouts: {registration: {default: 2s, min: 1s}}\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration loaded")
	o := w.run(w.begin(), api.Call{ID: "1", Tool: "slow"})
	if o.err != nil || o.result.Status != api.StatusStartFailed || o.result.Reason != "slow" || !strings.Contains(o.result.ToolError.Message, "within 2s of its start") {
		t.Errorf("%+v", o)
	}
}

// A file with an error is not taken up, and the log says where it is.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	before := len(w.tools())
	w.configure("nonsense: 1\n")
	d.signal(syscall.SIGHUP)
	d.waitLog("the configuration stays as it was")
	if want := w.Config + ":5"; !strings.Contains(d.log.text(), want) || !strings.Contains(d.log.text(), "nonsense") {
		t.Errorf("the log does not say %s", want)
	}
	if len(w.tools()) != before {
		t.Errorf("tools %+v", w.tools())
	}
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	if err := os.Remove(w.Config); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	wait.Until(t, "the second one is refused, too", func() bool { return strings.Count(d.log.text(), "stays as it was") == 2 })
}

// What cannot be described is a call's failure, not a tool that is not there;
// once it can be, calls are made.
func TestUndescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	broken := filepath.Join(w.dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.configure("  broken: {plugin: " + broken + "}\n  asked: {plugin: " + broken + ", mode: ask}\n")
	w.daemon()
	id := w.begin()
	o := w.run(id, api.Call{ID: "1", Tool: "broken"})
	if o.err != nil || o.result.Status != "start_failed" || !strings.Contains(o.result.Message, broken) || o.result.Tool != "broken" {
		t.Errorf("%+v", o)
	}
	self, _ := os.Executable()
	if err := errors.Join(os.Remove(broken), os.Symlink(self, broken)); err != nil {
		t.Fatal(err)
	}
	w.mustRun(w.begin(), "broken", workArgs{})
	if o := w.run(id, api.Call{ID: "2", Tool: "asked"}); o.err != nil || o.result.Status != "denied" || o.result.Reason != "headless" {
		t.Errorf("it was not asked for: %+v", o)
	}
}
