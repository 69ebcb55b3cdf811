package mcpserver

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// node runs a program of testdata's clients and gives what it prints.
func node(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(wait.Context(t), "node", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("node %q: %v\n%s", args, err, out.String())
	}
	return out.Bytes()
}

// wire is a result as a client in another language gives it.
type wire struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError    bool                  `json:"isError"`
	Structured json.RawMessage       `json:"structuredContent"`
	Meta       map[string]api.Result `json:"_meta"`
}

// The inspector's command line lists and calls.
func TestInspector(t *testing.T) {
	t.Parallel()
	stage.Of(t, "interop")
	cli := filepath.Join(npm.Folder(t, "testdata"), "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	inspect := func(args ...string) []byte {
		return node(t, append(append([]string{cli, "--cli"}, append(args, "--")...), command(t).Args...)...)
	}
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if raw := inspect("--method", "tools/list"); json.Unmarshal(raw, &list) != nil || len(list.Tools) != 7 {
		t.Errorf("%s", raw)
	}
	var r wire
	raw := inspect("--method", "tools/call", "--tool-name", "say", "--tool-arg", "text=hello")
	if json.Unmarshal(raw, &r) != nil || r.IsError || r.Content[0].Text != "hello" || r.Meta[executionKey].Status != api.StatusOK {
		t.Errorf("%s", raw)
	}
}

// seen is what testdata/client.mjs prints.
type seen struct {
	Tools    []string `json:"tools"`
	Progress []struct {
		Progress float64 `json:"progress"`
		Message  string  `json:"message"`
	} `json:"progress"`
	Asked  []string `json:"asked"`
	Result *wire    `json:"result"`
	Error  string   `json:"error"`
}

type plan map[string]any

// typeScript calls a tool with the TypeScript SDK's client.
func typeScript(t *testing.T, p plan, server ...string) (s seen) {
	t.Helper()
	dir := npm.Folder(t, "testdata")
	script, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir() // imports are looked for beside the script
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(own, "node_modules")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(own, "client.mjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	what, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	raw := node(t, append([]string{file, string(what)}, server...)...)
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return s
}

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	stage.Of(t, "interop")
	for name, server := range map[string]func(t *testing.T) []string{
		"stdio": func(t *testing.T) []string { return command(t).Args },
		"http": func(t *testing.T) []string {
			web := httptest.NewServer(newServer(t, setup{}).Handler())
			t.Cleanup(web.Close)
			return []string{web.URL}
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := server(t)
			if s := typeScript(t, plan{"tool": "say", "arguments": plan{"text": "hello"}}, at...); s.Result == nil || s.Result.Content[0].Text != "hello" || string(s.Result.Structured) != `{"text":"hello"}` {
				t.Errorf("say: %+v", s)
			}
			for action, want := range map[string]bool{"accept": false, "decline": true} {
				s := typeScript(t, plan{"tool": "wipe", "arguments": plan{}, "elicit": action}, at...)
				if s.Result == nil || s.Result.IsError != want || len(s.Asked) != 1 || !strings.Contains(s.Asked[0], "wipe") {
					t.Errorf("wipe, %s: %+v", action, s)
				}
			}
			mark := newMark()
			s := typeScript(t, plan{"tool": "hang", "arguments": plan{"mark": mark}, "cancelAfterProgress": true}, at...)
			if s.Error == "" || len(s.Progress) == 0 {
				t.Errorf("cancelled: %+v", s)
			}
			waitGone(t, mark)
		})
	}
}
