package config

import (
	"strings"
	"testing"
)

func TestWrongDaemonKeys(t *testing.T) {
	for text, want := range map[string]string{
		"socket: {mode: 0640}":                       "is not a mode of a socket",
		"socket: {mode: rw}":                         "is not a mode of a socket",
		"socket: {uids: [me]}":                       "is not a user id",
		"socket: {uids: [-1]}":                       "is not a user id",
		"socket: {uids: 1000}":                       "is not a list",
		"listen: 0.0.0.0:7070":                       "is not this machine's alone",
		"listen: example.org:80":                     "does not begin with an address",
		"listen: \"[::]:80\"":                        "is not this machine's alone",
		"listen: 127.0.0.1":                          "is not an address",
		"listen: 127.0.0.1:666666":                   "is not an address",
		"tls: {cert: bin/grep}":                      "tls needs both cert and key",
		"proxies: [proxy]":                           "is not an address or network",
		"proxies: [10.0.0.1/8]":                      "is not an address or network",
		"proxies: [\"::ffff:10.0.0.7\"]":             "is IPv4 in IPv6",
		"proxies: [\"::ffff:10.0.0.0/120\"]":         "is IPv4 in IPv6",
		"network: {deny: [\"::ffff:10.0.0.7\"]}":     "is IPv4 in IPv6",
		"network: {deny: [\"::ffff:10.0.0.0/120\"]}": "is IPv4 in IPv6",
		"publicUrl: tools.example":                   "is not a URL",
		"publicUrl: http://t.example":                "unencrypted",
		"publicUrl: https://t.example/x":             "more than a scheme and a host",
		"access: {a: {roles: [root]}}":               "is unknown",
		"access: {a: {tools: [\"[\"]}}":              "is not a pattern of tools",
		"access: {a: {quota: {turns: 0}}}":           "is not positive",
		"access: {a: {uids: [7]}, b: {uids: [7]}}":   "is in access.a already",
		"access: {\"a b\": {uids: [7]}}":             "is not a name for an entry of access",
		"stop: {wait: 0s}":                           "is not positive",
		"stop: {wait: infinite}":                     "may not be infinite",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
}

// A variable stands for the path, and leaves the rest of the mapping alone.
func TestSocketVariable(t *testing.T) {
	l := mustLoad(t, "socket: {path: /run/file.sock, mode: 0660}", "TOOLHOST_SOCKET=/run/variable.sock")
	if l.Daemon.Socket != "/run/variable.sock" || l.Daemon.SocketMode != 0o660 {
		t.Errorf("%+v", l.Daemon)
	}
}

func TestWhatNeedsARestart(t *testing.T) {
	before := mustLoad(t, "turn: {parallel: 2, maxCalls: 3}\nstop: {wait: 2s}\nsocket: {mode: 0600}\nlimits: {ioMax: {\"8:0\": {read: 5k}}}\ntelemetry: {otlp: {traces: true}}")
	after := mustLoad(t, "turn: {parallel: 3, maxCalls: 4}\nstop: {wait: 3s}\nsocket: {mode: 0660}\nlimits: {ioMax: {\"8:0\": {read: 6k}}}\ntelemetry: {otlp: {traces: false}}")
	d := Compare(before, after)
	if got := strings.Join(d.Restart, " "); got != "socket.mode telemetry.otlp.traces turn.parallel" {
		t.Errorf("a restart is needed for %q", got)
	}
	if len(d.Settings) != 6 {
		t.Errorf("settings %q", d.Settings)
	}
}

// The word none is not a folder of that name.
func TestNoState(t *testing.T) {
	for text, want := range map[string]string{"state: none": noState, "state: ./none": "/etc/th/none"} {
		l, err := load(t, text+"\n")
		if err != nil || l.State != want {
			t.Errorf("%s: %+v, %v, want %s", text, l, err, want)
		}
	}
}
