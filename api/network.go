package api

import (
	"fmt"
	"net/netip"
	"strings"
)

// MaxNetworkEntries bounds each of Network's lists: Flows and Refused.
const MaxNetworkEntries = 100

// Network describes a call's use of the network. For a kept process it covers
// everything that the process did during the call, including for other calls.
type Network struct {
	// Mode is "none", "host" or "grants". The other fields are set only with grants.
	Mode string `json:"mode"`
	// Flows are the granted connections by destination, and Refused the refused
	// requests, at most MaxNetworkEntries each.
	Flows   []NetworkFlow    `json:"flows"`
	Refused []NetworkRefusal `json:"refused"`
	// MoreFlows, MoreSentBytes and MoreReceivedBytes count the connections, and their
	// bytes, to destinations left out of Flows; MoreRefused counts the refusals left
	// out of Refused.
	MoreFlows         int64 `json:"moreFlows,omitempty"`
	MoreSentBytes     int64 `json:"moreSentBytes,omitempty"`
	MoreReceivedBytes int64 `json:"moreReceivedBytes,omitempty"`
	MoreRefused       int64 `json:"moreRefused,omitempty"`
	// Unreachable counts what the kernel refused in the call's network namespace,
	// by the namespace's counters: other ports, addresses not granted, UDP.
	Unreachable int64 `json:"unreachable"`
	// Shared is set if the process served other calls at the same time, whose
	// connections are included.
	Shared bool `json:"shared,omitempty"`
	// Limit is the limit that ended the call: connectionsTotal, sent or received. After
	// it no connection was made and no byte was forwarded.
	Limit string `json:"limit,omitempty"`
	// Error says why the account is incomplete: the relay ended during the call.
	Error string `json:"error,omitempty"`
}

// NetworkFlow sums up the connections to one destination.
type NetworkFlow struct {
	// Name is the granted name; empty for a granted address.
	Name string `json:"name,omitempty"`
	// Address is the address connected to; empty if no connection was made, or a
	// proxy chose the address.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port"`
	// Connections counts the tool's connections; SentBytes went to the destination,
	// ReceivedBytes came from it.
	Connections   int64 `json:"connections"`
	SentBytes     int64 `json:"sentBytes"`
	ReceivedBytes int64 `json:"receivedBytes"`
	// FirstMs is when the first connection was requested, LastMs when the last one
	// ended, both since the start of the process.
	FirstMs int64 `json:"firstMs"`
	LastMs  int64 `json:"lastMs"`
	// Error is the last error: a failed lookup or connect, a broken connection, an
	// abandoned request on port 80, or a limit.
	Error string `json:"error,omitempty"`
	// Via is "proxy" if an outbound proxy made the connection.
	Via string `json:"via,omitempty"`
}

// NetworkRefusal counts refusals of one kind. Port is 0 if the tool only looked the
// name up, as for a granted name that does not exist.
type NetworkRefusal struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	Count   int64  `json:"count"`
	Why     string `json:"why"`
}

// NetworkLimits are the limits of a call with network grants; 0 means no limit.
type NetworkLimits struct {
	// Connections is the number of open connections; further ones are refused.
	Connections int64 `json:"connections"`
	// TotalConnections, SentBytes and ReceivedBytes end the call that passes them.
	TotalConnections int64 `json:"totalConnections"`
	SentBytes        int64 `json:"sentBytes"`
	ReceivedBytes    int64 `json:"receivedBytes"`
	// BytesPerSecond bounds both directions together.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// IdleMs closes a connection without traffic. ConnectTimeoutMs bounds the time to
	// connect.
	IdleMs           int64 `json:"idleMs"`
	ConnectTimeoutMs int64 `json:"connectTimeoutMs"`
}

// Total returns the sums of all connections and refusals, including those left out of
// the lists.
func (n *Network) Total() (flows NetworkFlow, refused int64) {
	flows = NetworkFlow{Connections: n.MoreFlows, SentBytes: n.MoreSentBytes, ReceivedBytes: n.MoreReceivedBytes}
	for _, f := range n.Flows {
		flows.Connections += f.Connections
		flows.SentBytes += f.SentBytes
		flows.ReceivedBytes += f.ReceivedBytes
	}
	refused = n.MoreRefused
	for _, f := range n.Refused {
		refused += f.Count
	}
	return flows, refused
}

// NotGranted is the beginning of a NetworkRefusal's Why if no grant matches.
const NotGranted = "not granted"

// NoNetwork is the beginning of the hint if a call failed because it has no network.
const NoNetwork = "the call has no network"

// synthetic addresses stand for names inside a call; outside they are for benchmarks
// (RFC 2544).
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

// grantable reports whether a grant of the name is valid and useful: a name that begins
// with an underscore is a service record.
func grantable(name string) bool {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if name == "" || name[0] == '_' || last == "localhost" || strings.Trim(last, "0123456789") == "" {
		return false
	}
	for _, label := range labels { // a name that was cut ends with dots
		if label == "" || strings.Trim(label, "-") != label || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// Grant returns the missing network grant in its short form. It is "" if no grant would
// help, and for addresses that should not be granted just because a tool asks for them or
// a name resolves to them: loopback, link-local (cloud metadata services), multicast, and
// the call's own.
func (f NetworkRefusal) Grant() string {
	host := f.Name
	if addr, err := netip.ParseAddr(f.Address); err == nil {
		if addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || synthetic.Contains(addr) {
			return ""
		}
		if host = addr.String(); addr.Is6() && f.Port != 0 {
			host = "[" + host + "]"
		}
	}
	switch {
	case host == "", f.Address == "" && !grantable(host):
		return ""
	case strings.HasPrefix(f.Why, NotGranted), f.Name != "" && f.Address != "":
	default:
		return "" // a name that was said in TLS or HTTP, or a limit
	}
	if f.Port == 0 || f.Port == 443 || f.Port == 80 {
		return strings.Trim(host, "[]")
	}
	return fmt.Sprintf("%s:%d", host, f.Port)
}
