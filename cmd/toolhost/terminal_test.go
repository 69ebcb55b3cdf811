package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/pty"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
)

type toolInput struct {
	Ask    string          `json:"ask,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Secret bool            `json:"secret,omitempty"`
	// Then is what it does without an answer; empty fails.
	Then string `json:"then,omitempty"`
	// Wait lasts until the call is ended.
	Wait bool `json:"wait,omitempty"`
}

// playTool is a tool that asks, and says what it was told.
func playTool() {
	plugin.Serve(plugin.NewTool(plugin.Tool{Name: "curious"}, func(ctx context.Context, in toolInput, out *plugin.Output) (string, error) {
		if in.Wait {
			_ = out.Progress(0.5, "waits")
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		if in.Ask == "" {
			return "said nothing", nil
		}
		value, err := out.Ask(ctx, plugin.Question{Prompt: in.Ask, Schema: in.Schema, Secret: in.Secret})
		fmt.Println("told", string(value))
		fmt.Fprintln(os.Stderr, "told", string(value))
		if err != nil {
			err = unanswered(in.Then, err)
		}
		return fmt.Sprintf("told %d bytes: %s", len(value), value), err
	}))
}

// unanswered is how a tool ends that has no answer.
func unanswered(then string, err error) error {
	switch then {
	case "copes":
		return nil
	case "refuses":
		return &plugin.InvalidArgumentsError{Err: err}
	case "panics":
		panic(err)
	case "exits":
		os.Exit(0)
	case "crashes":
		os.Exit(3)
	case "dies":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return err
}

// onTerminal starts toolhost as a person would. It gives its standard output,
// which is not a terminal, when it has ended with the exit code wanted.
func onTerminal(t *testing.T, p *pty.PTY, env []string, args ...string) (ended func(code int) string) {
	t.Helper()
	cmd := exec.CommandContext(wait.Context(t), testBinary(t), append([]string{asToolhost}, args...)...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR="), env...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	p.Attach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func(code int) string {
		t.Helper()
		_ = cmd.Wait() // its exit code tells more
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("exit code %d, want %d:\n%s\n%s", got, code, p.Screen(), stdout.String())
		}
		return stdout.String()
	}
}

// batchFile writes calls of the tool, one for each input.
func batchFile(t *testing.T, inputs ...toolInput) string {
	t.Helper()
	var calls []map[string]any
	for i, in := range inputs {
		calls = append(calls, map[string]any{"id": fmt.Sprint("call-", i), "tool": "curious", "arguments": in})
	}
	raw, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "batch.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestApprovalOnATerminal(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]struct {
		code        int
		out, screen string
	}{
		"y\r": {0, "said nothing", ""}, "n\r": {exit.Failed, "", ""},
		"\x03": {exit.Aborted, "", "  cancelled\r\n"}, "\x04": {exit.Failed, "", "  denied\r\n"},
	} {
		t.Run(fmt.Sprintf("%q", keys), func(t *testing.T) {
			t.Parallel()
			p := pty.New(t)
			ended := onTerminal(t, p, nil, "run", "--mode", "ask", testBinary(t), "ask=")
			p.Expect(t, "allow? [y/n/a]", 1)
			p.Type(t, keys)
			if out := ended(want.code); !strings.Contains(out, want.out) {
				t.Errorf("printed %q, want %q", out, want.out)
			}
			if want.screen != "" {
				p.Expect(t, want.screen, 1) // which may be read after the command's end
			}
		})
	}
}

// A name that is not granted is asked about while its connection waits.
func TestANameOnATerminal(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "toolhost.yaml")
	text := "tools:\n  fetch:\n    command: [curl, -sS, \"https://asked.invalid/\"]\n    network: {grants: [granted.invalid], ask: true}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{
		"n\r": "asked.invalid port 443: not granted, and a human has denied it", "y\r": "the connection to asked.invalid port 443 failed: looking the name up",
	} {
		p := pty.New(t)
		ended := onTerminal(t, p, nil, "run", "--config", config, "fetch")
		p.Expect(t, "fetch wants asked.invalid:443", 1)
		p.Expect(t, "may touch  reach granted.invalid, reach others after asking", 1)
		p.Expect(t, "allow? [y/n/a]", 1)
		p.Type(t, keys)
		ended(exit.Failed)
		p.Expect(t, want, 1)
	}
}

// Nothing of what is approved can hide: the end is there, and the middle is on
// demand.
func TestApprovalOfLongArguments(t *testing.T) {
	t.Parallel()
	p := pty.New(t)
	ask := strings.Repeat("a", 1500) + "THE-MIDDLE" + strings.Repeat("b", 1500) + "THE-END"
	ended := onTerminal(t, p, nil, "run", "--quiet", "--mode", "ask", testBinary(t), "ask="+ask)
	p.Expect(t, "allow? [y/n/a/v]", 1)
	if screen := p.Screen(); !strings.Contains(screen, "THE-END") || strings.Contains(screen, "THE-MIDDLE") {
		t.Errorf("the terminal shows\n%s", screen)
	}
	p.Type(t, "v\r")
	p.Expect(t, "THE-MIDDLE", 1)
	p.Expect(t, "allow? [y/n/a]", 1)
	p.Type(t, "n\r")
	ended(exit.Failed)
}

// A secret is asked for without echo, and is in nothing that is left of the
// turn: terminal, output, events and journal.
func TestSecretOnATerminal(t *testing.T) {
	t.Parallel()
	p := pty.New(t)
	state := t.TempDir()
	ended := onTerminal(t, p, nil, "turn", "--state", state, "--events", "--plugin", testBinary(t), batchFile(t, toolInput{Ask: "Password of the archive?", Secret: true}))
	p.Expect(t, "(not shown)", 1)
	if p.Echoes(t) {
		t.Error("the terminal echoes")
	}
	p.Type(t, "hunter2-xyz\r")
	out := ended(0)
	if !strings.Contains(out, `"status":"ok"`) || !strings.Contains(out, "told 13 bytes") {
		t.Errorf("the tool was not told: %s", out)
	}
	kept := readAll(t, state)
	if !strings.Contains(kept, "interaction_response") {
		t.Error("the question is not on record")
	}
	for name, text := range map[string]string{"the terminal": p.Screen(), "the output": out, "the journal": kept} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has the secret", name)
		}
	}
}

// readAll is all that the files below a folder hold.
func readAll(t *testing.T, dir string) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// Questions interrupt the live view; a batch's results come whole after it.
func TestLiveViewOfATurn(t *testing.T) {
	t.Parallel()
	p := pty.New(t)
	batch := batchFile(t, toolInput{Wait: true}, toolInput{Ask: "Which?", Schema: json.RawMessage(`{"type":"string","enum":["red","green"]}`)})
	ended := onTerminal(t, p, nil, "turn", "--state", "none", "--timeout", "2m", "--grace", "0", "--plugin", testBinary(t), batch)
	p.Expect(t, "The tool curious asks: Which?", 1)
	p.Type(t, "2\r")
	for _, want := range []string{"call-0  running  curious", "50%  waits", "call-1  ok: curious"} {
		p.Expect(t, want, 1)
	}
	p.Type(t, "\x03")
	out := ended(exit.Aborted)
	p.Expect(t, "call-0  cancelled: curious", 1)
	if !strings.Contains(out, `"status":"cancelled"`) || !strings.Contains(out, "told 7 bytes") {
		t.Errorf("printed %s", out)
	}
}

// Whoever wants plain output gets no control characters.
func TestPlainTerminal(t *testing.T) {
	t.Parallel()
	for _, plain := range []struct {
		env  []string
		args []string
	}{{[]string{"NO_COLOR=1"}, nil}, {[]string{"TERM=dumb"}, nil}, {nil, []string{"--quiet"}}, {nil, []string{"--json"}}} {
		t.Run(fmt.Sprint(plain.env, plain.args), func(t *testing.T) {
			t.Parallel()
			p := pty.New(t)
			args := append([]string{"turn", "--state", "none", "--plugin", testBinary(t)}, plain.args...)
			onTerminal(t, p, plain.env, append(args, batchFile(t, toolInput{}))...)(0)
			if strings.Contains(p.Screen(), "\x1b") {
				t.Errorf("the terminal has %q", p.Screen())
			}
		})
	}
}

// A human has as long as the configuration and the tool's entry say.
func TestApprovalTimeoutIsConfigured(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "toolhost.yaml")
	text := "timeouts: {approval: 100ms}\ntools:\n  all: {command: [echo], mode: ask}\n  own: {command: [echo], mode: ask, timeouts: {approval: 200ms}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"all", "own"} {
		p := pty.New(t)
		onTerminal(t, p, nil, "run", "--config", config, tool)(exit.Failed)
		p.Expect(t, "nobody approved it in time", 1)
	}
}

// Without a terminal nobody is asked; what a question declares as its default
// is taken, and without one the command says so with its own exit code, whatever
// the tool makes of it.
func TestHeadlessQuestions(t *testing.T) {
	t.Parallel()
	const blue, none = `{"type":"string","default":"blue"}`, `{"type":"string"}`
	d := serve(t, "tools: {curious: {plugin: "+testBinary(t)+"}}")
	for _, c := range []struct {
		schema, then string
		want         int
	}{
		{blue, "", exit.OK},
		{none, "", exit.Headless},
		{"", "", exit.Headless},
		{none, "copes", exit.Headless},
		{none, "refuses", exit.Headless},
		{none, "panics", exit.Headless},
		{none, "exits", exit.Headless},
		{none, "crashes", exit.Headless},
		{none, "dies", exit.Headless},
	} {
		in := toolInput{Ask: "Which?", Schema: json.RawMessage(c.schema), Then: c.then}
		if c.schema == "" {
			in.Schema = nil
		}
		args, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		for command, rest := range map[string][]string{
			"run": {testBinary(t), "--args", string(args)}, "call": {"--socket", d.socket, "curious", "--args", string(args)},
			"turn": {"--state", "none", "--plugin", testBinary(t), batchFile(t, in)},
		} {
			t.Run(command+" "+c.schema+c.then, func(t *testing.T) {
				cmd := exec.CommandContext(wait.Context(t), testBinary(t), append([]string{asToolhost, command, "--headless"}, rest...)...)
				out, _ := cmd.CombinedOutput() // its exit code tells more
				if got := cmd.ProcessState.ExitCode(); got != c.want || got == exit.OK && !bytes.Contains(out, []byte(`told 6 bytes: \"blue\"`)) {
					t.Errorf("exit code %d, want %d: %s", got, c.want, out)
				}
			})
		}
	}
}

// Whatever a command leaves on a terminal, the outcome has a line of its own.
func TestTheOutcomeHasItsOwnLine(t *testing.T) {
	needShell(t)
	t.Parallel()
	for said, want := range map[string]string{
		`ok: sh, 1ms\r`:                   "ok: sh, 1ms\r\r\ncrashed: sh, ",
		`progress 10%%\rprogress 20%%`:    "progress 20%\r\ncrashed: sh, ",
		`\033[8mok: sh, 1ms\r`:            "\x1b[8mok: sh, 1ms\r\x1b[0m\r\ncrashed: sh, ",
		`whole line\n`:                    "whole line\r\ncrashed: sh, ",
		`\342\200\250ok: sh, 1ms\302\205`: "\\u2028ok: sh, 1ms\\x85\r\ncrashed: sh, ",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			for _, raw := range []bool{false, true} {
				if raw && strings.Contains(want, "u2028") {
					continue
				}
				p := pty.New(t)
				args := []string{"exec"}
				if raw {
					args = append(args, "--raw")
				}
				ended := onTerminal(t, p, nil, append(args, "--", "sh", "-c", "printf '"+said+"' >&2; kill -9 $$")...)
				ended(exit.SignalBase + 9)
				p.Expect(t, "crashed: sh", 1)
				if !strings.Contains(p.Screen(), want) {
					t.Errorf("raw %v: %q is not on the screen: %q", raw, want, p.Screen())
				}
			}
		})
	}
}
