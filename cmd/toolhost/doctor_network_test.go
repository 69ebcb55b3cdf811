package main

import (
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

func TestDoctorOfProxies(t *testing.T) {
	for value, want := range map[string]string{
		"":                                      "",
		"http://proxy.example:3128":             "ok: granted names are reached by HTTPS_PROXY=http://proxy.example:3128",
		"proxy.example:3128":                    "ok: granted names are reached by HTTPS_PROXY=http://proxy.example:3128",
		"http://user:secret@proxy.example:3128": "ok: granted names are reached by HTTPS_PROXY=http://user:xxxxx@proxy.example:3128",
		"https://proxy.example:3128":            "warn: HTTPS_PROXY is not an address that begins with http://",
		"socks5://proxy.example:1080":           "warn: HTTPS_PROXY is not an address that begins with http://",
		"http://[::1":                           "warn: HTTPS_PROXY is not an address that begins with http://",
	} {
		var said []string
		for _, f := range checkProxy(&httpproxy.Config{HTTPSProxy: value}) {
			said = append(said, f.Level+": "+f.Detail)
			if f.Level != levelOK && f.Remedy == "" {
				t.Errorf("%s: no remedy", value)
			}
		}
		if got := strings.Join(said, "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
