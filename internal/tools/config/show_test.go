package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/network"
)

// What Show writes can be loaded, and means the same.
func TestShowLoadsAgain(t *testing.T) {
	_, files := example(t)
	files["/etc/th/conf.d/odd.yaml"] = `tools:
  odd: {plugin: ../bin/search, args: ["a b", "${HOME}", "$$x", "#", "", "true", "é\n\u0007"], env: {P: "${HOME}/x", Q: }, ioMax: {"8:0": {read: 1MiB}}, title: "yes: no"}
  split: {command: "../bin/grep -e '{p}' \"a  b\"", params: {p: {enum: ["1", x, "true"]}}}
  relative: {plugin: ../bin/grep, read: [.., workspace], dir: ../bin}
  reaching: {command: [curl], network: [a.example, {name: "*.b.example", ports: [8443, 22], tls: true}, "[2001:db8::1]:22"]}
  asking: {command: [curl], network: {ask: true, grants: [a.example:22]}}
  dollar: {mcp: [../bin/x, "$$HOME", "${HOME}"]}
`
	before, err := loadFiles(t, files, "TOOLHOST_PIDS=9")
	if err != nil {
		t.Fatal(err)
	}
	text := string(before.Show())
	after, err := loadFiles(t, map[string]string{"/etc/th/toolhost.yaml": text, "/etc/th/secrets/weather": "x"}, "TOOLHOST_PIDS=9")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i, tool := range before.Tools {
		want, got := tool.Request(), after.Tools[i].Request()
		want.Timeouts, got.Timeouts = nil, nil // compared below
		// Built-in values are shown, and then stand in the file.
		want.Limits.OutputBytes, want.Limits.SpillBytes, want.Limits.OpenFiles, want.Limits.WorkspaceInodes = 1<<20, 64<<20, 1024, 64<<10
		want.Limits.Network = network.DefaultLimits()
		if !reflect.DeepEqual(want, got) || !reflect.DeepEqual(tool.Command, after.Tools[i].Command) || !reflect.DeepEqual(tool.MCP.Argv, after.Tools[i].MCP.Argv) {
			t.Errorf("%s was\n%+v\n%+v\n%q and is\n%+v\n%+v\n%q", tool.Name, want, tool.Command, tool.MCP.Argv, got, after.Tools[i].Command, after.Tools[i].MCP.Argv)
		}
		if a, b := resolve(before, tool), resolve(after, after.Tools[i]); a.Timeout != b.Timeout || a.Max != b.Max {
			t.Errorf("%s was %+v and is %+v", tool.Name, a, b)
		}
	}
	if again := string(after.Show()); strings.Count(again, "\n") != strings.Count(text, "\n") {
		t.Errorf("shown again, it is\n%s\nand was\n%s", again, text)
	}
}

func TestShowTellsSources(t *testing.T) {
	text := string(mustLoad(t, layered, "TOOLHOST_CPU=75%", "TOOLHOST_TIMEOUT=9s").Show())
	for _, line := range []string{
		"  memory: 100MiB  # /etc/th/toolhost.yaml:2", "  cpu: 75%  # TOOLHOST_CPU", "    default: 9s  # TOOLHOST_TIMEOUT", "  spill: 64MiB  # built-in",
		"    memory: 200MiB  # class c, /etc/th/toolhost.yaml:5", "      A: class  # class c, /etc/th/toolhost.yaml:5",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	l := mustLoad(t, `secrets: {api: {file: secrets/api}}
tools: {t: {plugin: bin/search, env: {API_TOKEN: hunter2, PLAIN: visible, githubKey: hunter2}, secrets: {K: {secret: api}}}}`)
	text := string(l.Show())
	for _, v := range l.Tools[0].Values() {
		text += v.Text
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "s3cret") || !strings.Contains(text, "visible") {
		t.Errorf("shown:\n%s", text)
	}
	for name, want := range map[string]bool{
		"API_KEY": true, "GITHUB_TOKEN": true, "DB_PASSWORD": true, "AWS_ACCESS_KEY_ID": true, "OPENAI_API_KEYS": true, "apikey": true, "KEY2": true,
		"PATH": false, "AUTHOR": false, "GIT_AUTHOR_NAME": false, "KEYBOARD": false, "HOME": false,
	} {
		if SecretName(name) != want {
			t.Errorf("%s is a secret: %t", name, !want)
		}
	}
}

func TestCompare(t *testing.T) {
	before := mustLoad(t, layered)
	for text, want := range map[string]Diff{
		"# a comment\n\n" + layered:                                                          {},
		strings.Replace(layered, "memory: 300MiB", "memory: 301MiB", 1):                      {Changed: []string{"own"}},
		strings.Replace(layered, "grace: 4s", "grace: 5s", 1):                                {Changed: []string{"classy", "own"}},
		strings.Replace(layered, "pids: 10", "TasksMax: 11", 1):                              {Changed: []string{"plain", "classy", "own"}, Settings: []string{"limits.pids"}},
		strings.Replace(layered, "  plain: {", "  other: {", 1):                              {Added: []string{"other"}, Removed: []string{"plain"}},
		layered + "state: /s\ntotals: {pids: 9}\nturn: {maxCalls: 9}\n":                      {Settings: []string{"state", "totals.pids", "turn.maxCalls"}, Restart: []string{"state", "totals.pids"}},
		strings.Replace(layered, "plain: {plugin: bin/search}", "plain: {command: [ls]}", 1): {Changed: []string{"plain"}},
	} {
		if got := Compare(before, mustLoad(t, text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v of\n%s", got, want, text)
		}
	}
	a := mustLoad(t, "tools: {t: {mcp: [x], tools: {a: {timeout: 5s}}}}")
	b := mustLoad(t, "tools: {t: {mcp: [x], tools: {a: {timeout: 6s}}}}")
	if got := Compare(a, b); !reflect.DeepEqual(got.Changed, []string{"t"}) {
		t.Errorf("%+v", got)
	}
}
