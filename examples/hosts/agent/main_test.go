package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
)

// folder has this agent and the example tools; only TestMain sets it.
var folder string

// build fills it, once.
var build = sync.OnceValue(func() error {
	return binaries.Into(folder, "agent", "search", "wordcount", "stubborn")
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "agent-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func binary(t *testing.T, name string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, to build the agent and tools")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

// session is one run of the agent.
type session struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func newSession(t *testing.T, s *server, api string, args ...string) *session {
	t.Helper()
	args = append([]string{"--api", api, "--base-url", s.URL + basePaths[api], "--model", "scripted"}, args...)
	r := &session{Cmd: exec.CommandContext(t.Context(), binary(t, "agent"), args...)}
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	r.Env = append(os.Environ(), "ANTHROPIC_API_KEY="+testKey, "OPENAI_API_KEY="+testKey)
	return r
}

// ends runs it and wants its exit code. Where calls cannot be supervised at
// all, the test is skipped.
func (r *session) ends(t *testing.T, want int) {
	t.Helper()
	r.ended(t, r.Run(), want)
}

func (r *session) ended(t *testing.T, err error, want int) {
	t.Helper()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	if (err != nil || code != want) && os.Geteuid() != 0 {
		t.Skipf("needs root, or a cgroup delegated to this user: %s", r.stderr.String())
	}
	if err != nil || code != want {
		t.Fatalf("exit code %d, error %v, want %d\nstdout: %s\nstderr: %s", code, err, want, r.stdout.String(), r.stderr.String())
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// An endpoint of one's own may need no key; those of the APIs do.
func TestAKeyIsMissing(t *testing.T) {
	for api, variable := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "openai-chat": "OPENAI_API_KEY"} {
		t.Setenv(variable, "")
		if _, err := (&options{api: api}).client(nil, nil); err == nil || !strings.HasPrefix(err.Error(), variable+" is not set: ") {
			t.Errorf("%s: %v", api, err)
		}
		if _, err := (&options{api: api, baseURL: "http://127.0.0.1:1"}).client(nil, nil); err != nil {
			t.Errorf("%s with --base-url: %v", api, err)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"--api soap --model m p", `--api "soap" is unknown`},
		{"p", "--model is missing"},
		{"--model m --yes --ask p", "contradict"},
		{"--model m --max-rounds 0 p", "too few"},
		{"--model m", "there is no prompt"},
	} {
		_, err := parse(strings.Fields(c.args), strings.NewReader(" \n"), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
	o, err := parse([]string{"--model", "m", "--plugin", "a", "--plugin", "b"}, strings.NewReader("from stdin"), &bytes.Buffer{})
	if err != nil || o.prompt != "from stdin" || !o.headless || len(o.plugins) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
