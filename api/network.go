package api

import (
	"fmt"
	"net/netip"
	"strings"
)

// MaxNetworkEntries bounds the flows that a result lists, and the refusals.
const MaxNetworkEntries = 100

// Network is what a call did with its network. Of a kept process it is what
// happened in the process while the call ran, that of other calls at the same time
// included.
type Network struct {
	// Mode is "none", "host" or "grants". Only with grants is more known than that.
	Mode string `json:"mode"`
	// Flows are the destinations that connections were granted to, and Refused what
	// was not, each at most 100.
	Flows   []NetworkFlow    `json:"flows"`
	Refused []NetworkRefusal `json:"refused"`
	// MoreFlows counts the connections to destinations that are left out, with
	// MoreSentBytes and MoreReceivedBytes; MoreRefused what is left out of Refused.
	MoreFlows         int64 `json:"moreFlows,omitempty"`
	MoreSentBytes     int64 `json:"moreSentBytes,omitempty"`
	MoreReceivedBytes int64 `json:"moreReceivedBytes,omitempty"`
	MoreRefused       int64 `json:"moreRefused,omitempty"`
	// Unreachable counts what the kernel refused inside: other ports, addresses that
	// were not granted, UDP. It is of the namespace's own counters.
	Unreachable int64 `json:"unreachable"`
	// Shared: the process served other calls meanwhile, too, and their connections
	// are in here.
	Shared bool `json:"shared,omitempty"`
	// Limit is the limit that was passed, which ends the call: connectionsTotal, sent or
	// received. From there on no connection and no byte was passed on.
	Limit string `json:"limit,omitempty"`
	// Error says why this is not complete: the relay has ended in mid-call.
	Error string `json:"error,omitempty"`
}

// NetworkFlow is all that went to one destination.
type NetworkFlow struct {
	// Name is the granted name; empty for a granted address.
	Name string `json:"name,omitempty"`
	// Address is the one that was really connected to; empty where none was, or a
	// proxy has chosen it.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port"`
	// Connections that the tool made. SentBytes left for the destination, and
	// ReceivedBytes came from it.
	Connections   int64 `json:"connections"`
	SentBytes     int64 `json:"sentBytes"`
	ReceivedBytes int64 `json:"receivedBytes"`
	// FirstMs and LastMs are when a first connection was asked for, and when the last
	// one ended, from the start of the process.
	FirstMs int64 `json:"firstMs"`
	LastMs  int64 `json:"lastMs"`
	// Error is the last one: of looking the name up, connecting, a connection that
	// broke, a request on port 80 that was given up, or a limit.
	Error string `json:"error,omitempty"`
	// Via is "proxy" where an outbound proxy made the connection.
	Via string `json:"via,omitempty"`
}

// NetworkRefusal is what was refused: a name without a port was asked of the name
// server only, as a granted one is that does not exist.
type NetworkRefusal struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	Count   int64  `json:"count"`
	Why     string `json:"why"`
}

// NetworkLimits bound what a call with network grants does with them; 0 means no
// limit.
type NetworkLimits struct {
	// Connections at once. More are refused.
	Connections int64 `json:"connections"`
	// TotalConnections, SentBytes and ReceivedBytes end the call that passes them.
	TotalConnections int64 `json:"totalConnections"`
	SentBytes        int64 `json:"sentBytes"`
	ReceivedBytes    int64 `json:"receivedBytes"`
	// BytesPerSecond are those of both ways together.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// IdleMs ends a connection on which nothing moves. ConnectTimeoutMs bounds how
	// long one takes to be made.
	IdleMs           int64 `json:"idleMs"`
	ConnectTimeoutMs int64 `json:"connectTimeoutMs"`
}

// Total is what all connections came to, and how much was refused, with what is left
// out of the lists.
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

// NotGranted begins the Why of what no grant is for.
const NotGranted = "not granted"

// NoNetwork begins the hint of a call that has failed for want of a network.
const NoNetwork = "the call has no network"

// synthetic addresses stand for names inside a call; outside they are for benchmarks
// (RFC 2544).
var synthetic = netip.MustParsePrefix("198.18.0.0/15")

// grantable says whether a name can be granted, and to some avail: one that begins with
// an underscore says a service of a name.
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

// Grant is the short form of the network grant that a refusal lacks; empty where none
// would help, and for addresses that nobody should grant because a tool asked for them,
// or a name leads there: loopback, link-local with the metadata services, and the call's
// own.
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
