package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
