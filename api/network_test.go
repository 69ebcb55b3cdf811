package api_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// What a refusal lacks is named, but for what nobody should grant because a tool has
// asked for it.
func TestGrantOfARefusal(t *testing.T) {
	for want, list := range map[string][]api.NetworkRefusal{
		"api.example.com":      {{Name: "api.example.com", Why: api.NotGranted}, {Name: "api.example.com", Port: 443, Why: api.NotGranted}},
		"a_b.example.com":      {{Name: "a_b.example.com", Why: api.NotGranted}},
		"api.example.com:8443": {{Name: "api.example.com", Port: 8443, Why: api.NotGranted + " on this port"}},
		"192.0.2.7:22":         {{Address: "192.0.2.7", Port: 22, Why: api.NotGranted}},
		"2001:db8::7":          {{Address: "2001:db8::7", Port: 443, Why: api.NotGranted}},
		"10.0.0.7":             {{Name: "api.example.com", Address: "10.0.0.7", Port: 443, Why: "the name leads to an address that is private"}},
		"": {
			{Name: "api.example.com", Port: 443, Why: "said in TLS"},
			{Name: "a?b", Why: api.NotGranted},
			{Name: "a&b.example.com", Why: api.NotGranted},
			{Name: "-a.example.com", Why: api.NotGranted},
			{Name: "_https._tcp.example.com", Why: api.NotGranted},
			{Name: "x.localhost", Why: api.NotGranted},
			{Name: "example.400", Why: api.NotGranted},
			{Name: strings.Repeat("a", 80) + "...", Why: api.NotGranted},
			{Why: api.NotGranted},
			{Address: "127.0.0.1", Port: 443, Why: api.NotGranted},
			{Address: "::1", Port: 443, Why: api.NotGranted},
			{Address: "198.18.7.7", Port: 443, Why: api.NotGranted},
			{Address: "198.19.255.255", Port: 443, Why: api.NotGranted},
			{Address: "0.0.0.0", Port: 443, Why: api.NotGranted},
			{Name: "moved.example.com", Address: "127.0.0.1", Port: 443, Why: "the name leads to an address that is loopback"},
			{Name: "moved.example.com", Address: "169.254.169.254", Port: 80, Why: "the name leads to an address that is a metadata service"},
		},
	} {
		for _, f := range list {
			if got := f.Grant(); got != want {
				t.Errorf("%+v: %q, want %q", f, got, want)
			}
		}
	}
}
