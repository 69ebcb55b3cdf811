package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/internal/testenv/escape"
	"github.com/toolhost/toolhost/internal/testenv/script"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// TestMain lets scripts run this binary as toolhost. The supervisor starts it
// by its own path as the command adapter, doctor for its version, and tests as toolhost
// or as a hostile tool.
func TestMain(m *testing.M) {
	supervisor.RelayMain()
	if os.Getenv("TOOLHOST_PLUGIN") != "" && len(os.Args) == 1 {
		playTool()
		return
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "adapter", "version":
			os.Exit(run(os.Args[1:]))
		case asToolhost:
			os.Exit(run(os.Args[2:]))
		case asUser:
			becomeUser(os.Args[2], os.Args[3:])
		case asLimited:
			becomeLimited(os.Args[2:])
		case asNothing:
			os.Exit(0)
		case asChurn:
			playChurn()
			return
		case asProbe:
			os.Exit(escape.Main(os.Args[2:], os.Stdout))
		}
	}
	testscript.Main(withTools{m}, map[string]func(){"toolhost": func() { os.Exit(run(os.Args[1:])) }})
}

// TestScripts runs the files in testdata/script, which read like documentation.
func TestScripts(t *testing.T) {
	t.Parallel()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds tools with go, which the VM does not have")
	}
	bin := toolsFolder(t)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("BIN", bin)
			env.Setenv("REPO", repository)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TOOLHOST_STATE", filepath.Join(env.WorkDir, "state"))
			env.Values[endsDaemon{}] = new(func() {})
			env.Setenv("RUN", fmt.Sprintf("%09d", rand.IntN(1e9))) // for names that no other run's processes have
			return nil
		},
		Condition: inStage,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": script.Exits, "until": script.Until, "refuses": refuses, "npm": npm, "block": fenced, "mcp-call": mcpCall, "daemon": startDaemon},
	})
}

// inStage is the condition [stage:NAME].
func inStage(condition string) (bool, error) {
	name, ok := strings.CutPrefix(condition, "stage:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return stage.Runs(name), nil
}

// refuses is exits for what has nothing to say but an error, on one line of stderr.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	script.Exits(ts, neg, args)
	if said := ts.ReadFile("stderr"); strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "toolhost: ") || !strings.HasSuffix(said, "\n") {
		ts.Fatalf("stderr is no one line of toolhost's: %q", said)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout has %q", out)
	}
}

// npm installs what a folder's package-lock.json names, by the user's own
// settings: npm FOLDER.
func npm(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = ts.MkAbs(args[0])
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("npm ci: %v\n%s", err, out)
	}
}

// fenced takes the Nth fenced block of a language out of a document: block
// DOCUMENT LANGUAGE N FILE.
func fenced(ts *testscript.TestScript, _ bool, args []string) {
	doc := ts.ReadFile(args[0])
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	for ; n > 0; n-- {
		var found bool
		if _, doc, found = strings.Cut(doc, "\n```"+args[1]+"\n"); !found {
			ts.Fatalf("%s has too few blocks of %s", args[0], args[1])
		}
	}
	text, _, _ := strings.Cut(doc, "```")
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(text), 0o600))
}
