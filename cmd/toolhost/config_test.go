package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// All that is wrong is told at once, with its line, whatever finds it.
func TestValidateTellsAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "toolhost.yaml")
	if err := errors.Join(syscall.Mkfifo(dir+"/a", 0o600), syscall.Mkfifo(dir+"/b", 0o600)); err != nil {
		t.Fatal(err)
	}
	text := `state: state
socket: {group: no-such-group}
tls: {cert: /etc/passwd, key: /etc/passwd}
tools:
  t: {command: [ls], write: [a, b]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_ = validateConfig(&out, path, false)
	for _, line := range []string{"    2 | socket:", "    3 | tls:", "    5 |   t: {command"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
	if strings.Count(out.String(), "tools.t: ") != 2 {
		t.Errorf("not each grant by itself:\n%s", out.String())
	}
}

func TestValidateEndsItsLines(t *testing.T) {
	for text, want := range map[string]string{
		"tools: {t: {command: [ls], tiemout: 1s}}\n":                                 `unknown key "tiemout"`,
		"access:\n  a: {group: no-such-group, tools: [t]}\n":                         `toolhost.yaml:2:14: access.a.group: unknown group "no-such-group": make it`,
		"socket: {group: no-such-group}\n":                                           `toolhost.yaml:1:17: socket.group: unknown group "no-such-group"`,
		"tls: {cert: /etc/passwd, key: /etc/passwd}\n":                               `toolhost.yaml:1:13: tls.cert: cannot use TLS with /etc/passwd and /etc/passwd: tls: failed to find any PEM data`,
		"secrets: {s: {file: /etc/passwd}}\ntools: {t: {command: [ls]}}\n":           "warning: ",
		"tools: {t: {command: 'ls \"$a\" | wc -l', shell: true, params: {a: {}}}}\n": "toolhost.yaml is valid: 1 tool\n",
	} {
		path := filepath.Join(t.TempDir(), "toolhost.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_ = validateConfig(&out, path, false)
		if !strings.HasSuffix(out.String(), "\n") || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "warning") != (want == "warning: ") {
			t.Errorf("%s: %q, want %q", text, out.String(), want)
		}
	}
}
