package present

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestNetwork(t *testing.T) {
	n := &api.Network{
		Mode: "grants",
		Flows: []api.NetworkFlow{
			{Name: "api.example.com", Address: "203.0.113.7", Port: 443, Connections: 2, SentBytes: 100, ReceivedBytes: 2048},
			{Name: "b.example.com", Port: 80, Connections: 1, Via: "proxy", Error: "connection refused"},
		},
		Refused:   []api.NetworkRefusal{{Name: "bad\x1b[31m", Count: 3, Why: "not granted"}},
		MoreFlows: 4, Unreachable: 1, Limit: "sent", Error: "network_error: the relay has ended",
	}
	want := []string{
		"reached api.example.com 203.0.113.7 port 443: 2 connections, 100B sent, 2KiB received",
		"reached b.example.com port 80: 1 connection, 0B sent, 0B received, by a proxy: connection refused",
		`refused bad\x1b[31m: not granted, 3 times`,
		"left out: 4 reached, 0 refused",
		"refused other ports or addresses, 1 time",
		"passed the limit sent, and nothing more from there on",
		"not complete: network_error: the relay has ended",
	}
	if got := Network(n); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Network(&api.Network{Mode: "none"}); got != nil {
		t.Errorf("a call without grants: %q", got)
	}
	if got := Network(nil); got != nil {
		t.Errorf("a call that never ran: %q", got)
	}
}
