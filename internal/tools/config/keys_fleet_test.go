package config

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func init() { maps.Copy(hostCases, fleetCases) }

var publicKey = "U" + strings.Repeat("A", 55)

var fleetCases = map[string]hostCase{
	"fleet.listen":  {"fleet: {listen: \"127.0.0.1:7420\"}", func(l *Loaded) any { return l.Fleet.Listen }, "127.0.0.1:7420"},
	"fleet.cert":    {"fleet: {cert: bin/grep, certKey: bin/search}", func(l *Loaded) any { return l.Fleet.Cert }, "/etc/th/bin/grep"},
	"fleet.certKey": {"fleet: {cert: bin/grep, certKey: bin/search, listen: \"0.0.0.0:7420\"}", func(l *Loaded) any { return l.Fleet.CertKey }, "/etc/th/bin/search"},
	"fleet.workers": {"fleet: {workers: {w1: " + publicKey + "}}", func(l *Loaded) any { return l.Fleet.Workers }, map[string]string{"w1": publicKey}},
	"fleet.url":     {"fleet: {url: \"tls://a:1,tls://b:2\"}", func(l *Loaded) any { return l.Fleet.URL }, "tls://a:1,tls://b:2"},
	"fleet.ca":      {"fleet: {ca: bin/grep}", func(l *Loaded) any { return l.Fleet.CA }, "/etc/th/bin/grep"},
	"fleet.key":     {"fleet: {key: f.key}", func(l *Loaded) any { return l.Fleet.Key }, "/etc/th/f.key"},
	"fleet.local":   {"fleet: {local: never}", func(l *Loaded) any { return l.Fleet.Local }, "never"},
}

// What a worker has need not be on the daemon's machine.
func TestPathsOfAWorker(t *testing.T) {
	for _, text := range []string{
		"tools: {a: {command: [ls], where: {gpu: a}, read: [/nosuch/r], write: [/nosuch/w], dir: /nosuch/w}}",
		"classes: {far: {where: {gpu: a}}}\ntools: {a: {command: [ls], class: far, read: [/nosuch]}}",
		"classes: {far: {where: {gpu: a}, read: [/nosuch]}}",
	} {
		if _, err := load(t, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What would leave a fleet open, or is not what it should be, is said where it stands.
func TestWrongFleets(t *testing.T) {
	for text, want := range map[string]string{
		"fleet: {listen: \"0.0.0.0:7420\"}":                    "without TLS all can read along",
		"fleet: {listen: \"127.0.0.1:1\", url: \"tls://a:1\"}": "exclude each other",
		"fleet: {cert: bin/grep}":                              "cert needs certKey",
		"fleet: {url: \"nats://10.0.0.1:4222\"}":               "would be unencrypted",
		"fleet: {url: \"tls://a\"}":                            "has no port: write tls://a:7420",
		"fleet: {workers: {w1: SUAB}}":                         "is not a public key",
		"fleet: {workers: {W.1: " + publicKey + "}}":           "is not a name for a worker",
		"tools: {a: {command: [ls], where: {\"a b\": c}}}":     "is not a name for a label",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A certificate that is not there is said, and nothing that follows from it.
func TestAMissingCertificateOfAFleet(t *testing.T) {
	_, err := load(t, "fleet: {listen: \"0.0.0.0:7420\", cert: nosuch, certKey: bin/grep}")
	if problems, ok := errors.AsType[Problems](err); !ok || len(problems) != 1 || problems[0].Path != "fleet.cert" {
		t.Errorf("%v", err)
	}
}
