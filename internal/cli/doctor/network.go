package doctor

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// checkNetwork makes a real call with grants of a name and an address, neither of
// which is used: its routes, ports below 1024 and the relay are there, or it is
// refused as every call with grants is.
func (p Program) checkNetwork(host *supervisor.Supervisor, features []sandbox.Finding) []Finding {
	const check = "network grants"
	result, err := p.try(host, &supervisor.Policy{Grants: []network.Grant{{Host: "doctor.invalid"}, {Host: "192.0.2.1", Ports: []uint16{22}}}})
	if err != nil {
		return []Finding{FailOf(check, err)}
	}
	if !result.OK() {
		return []Finding{Warn(check, "calls with network grants are refused: "+result.Message, "see to what the message names; calls without a network run")}
	}
	found := OK(check, "names and addresses can be granted; the relay has a user of its own")
	if slices.ContainsFunc(features, func(f sandbox.Finding) bool { return f.Feature == sandbox.FeatureOwnUID && f.State != sandbox.Yes }) {
		found = Warn(check, "names and addresses can be granted; the relay has your user id", "give the user subordinate ids (package uidmap, /etc/subuid and /etc/subgid), or run as root")
	}
	return append([]Finding{found}, checkProxy(httpproxy.FromEnvironment())...)
}

// checkProxy says which outbound proxy granted names are reached by. It is read as the
// relay reads it: http:// may be left out.
func checkProxy(c *httpproxy.Config) (findings []Finding) {
	const check = "network proxy"
	for _, p := range []struct{ name, value string }{{"HTTPS_PROXY", c.HTTPSProxy}, {"HTTP_PROXY", c.HTTPProxy}} {
		if p.value == "" {
			continue
		}
		var found Finding
		u, err := (&httpproxy.Config{HTTPSProxy: p.value}).ProxyFunc()(&url.URL{Scheme: "https", Host: "doctor.invalid"})
		switch {
		case err == nil && u == nil:
			found = Warn(check, p.name+" cannot be read as an address, and is not used: granted names are reached directly", "set "+p.name+"=http://HOST:PORT, with % in a password as %25, or unset it")
		case err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "":
			found = Warn(check, p.name+" is not an address that begins with http://, and connections by it fail", "set "+p.name+"=http://HOST:PORT, or unset it")
		default:
			found = OK(check, fmt.Sprintf("granted names are reached by %s=%s, which decides what addresses they lead to", p.name, u.Redacted()))
		}
		findings = append(findings, found)
	}
	return findings
}
