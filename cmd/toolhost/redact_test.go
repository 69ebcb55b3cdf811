package main

import (
	"strings"
	"testing"
)

// Encoders do not agree on what they escape, nor in which case.
func TestSecretsAreFoundBehindAnyEscapes(t *testing.T) {
	t.Parallel()
	needShell(t)
	forms := `ab%2Bcd/ef12%3D%3D ab%2bcd%2fef12%3d%3d "ab+cd\/ef12==" "ab\u002Bcd/ef12\u003D=" %61b+cd/ef12=%3D`
	dir := tree(t, map[string]string{
		"key": "ab+cd/ef12==\n", "forms": forms, "pin": "1234567890123\n",
		"toolhost.yaml": "state: none\nsecrets: {key: {file: key}, pin: {file: pin}}\ntools: {look: {command: [cat, forms], secrets: {KEY: {secret: key}}, read: [.], dir: .}, number: {command: [echo, '{{\"n\": 1234567890123}}'], format: json, secrets: {PIN: {secret: pin}}}}\n",
	})
	if out, code := runIn(dir, testBinary(t), "run", "--config", "toolhost.yaml", "number"); code != 1 || !strings.Contains(out, "in the place of a secret") {
		t.Errorf("%d: %s", code, out)
	}
	out, code := runIn(dir, testBinary(t), "run", "--quiet", "--config", "toolhost.yaml", "look")
	if want := `[REDACTED] [REDACTED] "[REDACTED]" "[REDACTED]" [REDACTED]`; code != 0 || strings.TrimSpace(out) != want {
		t.Errorf("%d: %s, want %s", code, out, want)
	}
}
