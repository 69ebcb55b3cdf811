package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// steer tries to have what toolhost writes at a name go elsewhere.
const steer = "rm -rf NAME; mv NAME aside; ln -sfn ../elsewhere NAME; "

// wantNothingElsewhere: no call has led anything there.
func wantNothingElsewhere(t *testing.T, dir, out string) {
	t.Helper()
	if list, err := os.ReadDir(dir + "/elsewhere"); err != nil || len(list) != 0 {
		t.Errorf("elsewhere are %v, %v: %s", list, err, out)
	}
}

// A call that may write around the spill folder, or another by the way before it,
// cannot decide where its output goes.
func TestCallsCannotLeadTheirSpillElsewhere(t *testing.T) {
	t.Parallel()
	needShell(t)
	script := strings.ReplaceAll(steer, "NAME", "spill") + "seq 1000; echo kept > free"
	exec := func(more ...string) []string { return append(append([]string{"exec"}, more...), "sh", "-c", script) }
	for name, args := range map[string][]string{
		"flags":      exec("--spill", "spill", "--output", "100", "--write", ".", "--"),
		"no sandbox": exec("--spill", "spill", "--output", "100", "--unsafe-no-sandbox", "--"),
		"file":       {"run", "--config", "toolhost.yaml", "look"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := "dirs: {spill: spill}\nstate: none\ntools: {look: {command: [sh, -c, '" + script + "'], write: [.], dir: ., output: 100}}\n"
			dir := tree(t, map[string]string{"elsewhere/": "", "p/spill/": "", "p/toolhost.yaml": config})
			out, _ := runIn(dir+"/p", testBinary(t), args...)
			wantNothingElsewhere(t, dir, out)
			if text, err := os.ReadFile(dir + "/p/free"); err != nil || string(text) != "kept\n" {
				t.Errorf("beside the spill folder it has made %q, %v: %s", text, err, out)
			}
			if list, _ := filepath.Glob(dir + "/p/spill/*.stdout"); len(list) != 1 && name != "no sandbox" {
				t.Errorf("spilled are %q: %s", list, out)
			}
		})
	}
}

func TestASpillFolderIsNotGrantedToWrite(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"spill/": "", "toolhost.yaml": "dirs: {spill: spill}\nstate: none\ntools: {look: {command: [id], write: [spill]}}\n"})
	if out, code := runIn(dir, testBinary(t), "config", "validate", "--config", "toolhost.yaml"); code == 0 || !strings.Contains(out, "toolhost's own") {
		t.Errorf("%d: %s", code, out)
	}
}

// Neither a call nor one before it decides which file a trace is written to.
func TestCallsCannotLeadATraceElsewhere(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := tree(t, map[string]string{"elsewhere/": "", "p/": ""})
	exec := func(trace, script string) (string, int) {
		return runIn(dir+"/p", testBinary(t), "exec", "--quiet", "--write", ".", "--trace", trace, "--", "sh", "-c", script)
	}
	out, _ := exec("trace.json", strings.ReplaceAll(steer, "NAME", "trace.json")+"echo over > trace.json; ln -s ../elsewhere/trace planted.json; mkfifo fifo.json")
	if text, err := os.ReadFile(dir + "/p/trace.json"); err != nil || !strings.Contains(string(text), "traceEvents") {
		t.Errorf("the trace is %.100q, %v: %s", text, err, out)
	}
	for _, name := range []string{"planted.json", "fifo.json"} {
		if out, code := exec(name, "true"); code != 2 || !strings.Contains(out, "cannot write the trace: ") {
			t.Errorf("%s: %d: %s", name, code, out)
		}
	}
	wantNothingElsewhere(t, dir, out)
}

// What is spilled to a folder of the caller's own stays, whatever the configuration keeps.
func TestNothingIsRemovedFromAFolderOfTheCallers(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := tree(t, map[string]string{"own/": "", "toolhost.yaml": "dirs: {spillTotal: 2MiB}\nstate: none\ntools: {look: {command: [sh, -c, 'seq 1000; seq 1000 >&2'], output: 100}}\n"})
	for range 3 {
		if out, code := runIn(dir, testBinary(t), "run", "--config", "toolhost.yaml", "--spill", "own", "look"); code != 0 {
			t.Fatalf("%d: %s", code, out)
		}
	}
	if list, err := filepath.Glob(dir + "/own/*.std*"); err != nil || len(list) != 6 {
		t.Errorf("left are %q, %v", list, err)
	}
}
