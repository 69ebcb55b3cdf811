package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/script"
	"github.com/toolhost/toolhost/plugin"
)

// asToolsdk makes this binary toolsdk.
const asToolsdk = "as-toolsdk"

// TestMain lets scripts run this binary as toolsdk. A supervisor starts it by
// its own path as the conformance driver, or as a tool.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLHOST_PLUGIN") != "" && len(os.Args) == 1 {
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "greet"}, func(context.Context, struct{}, *plugin.Output) (string, error) { return "hello", nil }))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == asToolsdk {
		os.Exit(run(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == driverCommand {
		os.Exit(run(os.Args[1:]))
	}
	testscript.Main(withCommands{m}, map[string]func(){"toolsdk": func() { os.Exit(run(os.Args[1:])) }})
}

// TestScripts runs the files in testdata/script, which read like documentation.
func TestScripts(t *testing.T) {
	t.Parallel()
	needGo(t)
	bin := commandsFolder(t)
	environment := goEnvironment(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			for name, value := range environment {
				env.Setenv(name, value)
			}
			env.Setenv("BIN", bin)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("PATH", env.Getenv("PATH")+":"+bin)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": script.Exits},
	})
}

func needGo(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds tools with go, which the VM does not have")
	}
}

// builtInto is a folder for all tests, which withCommands makes and removes.
var builtInto string

// withCommands are the tests.
type withCommands struct{ *testing.M }

func (w withCommands) Run() int {
	dir, err := os.MkdirTemp("", "toolsdk-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builtInto = dir
	return w.M.Run()
}

// commandsFolder has toolhost and the example tools.
func commandsFolder(t *testing.T) string {
	t.Helper()
	if err := buildCommands(); err != nil {
		t.Fatal(err)
	}
	return builtInto
}

var buildCommands = sync.OnceValue(func() error {
	return binaries.Into(builtInto, "toolhost", "checksum", "fetch", "search", "sqlite", "stubborn", "wordcount")
})

// goEnvironment is what go needs in a home of its own, and where the SDK is.
func goEnvironment(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOTOOLCHAIN"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for i, value := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		environment[names[i]] = value
	}
	sdk, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	environment["TOOLSDK_SDK"] = sdk
	return environment
}
