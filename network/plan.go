package network

import (
	"fmt"
	"net/netip"
	"slices"
)

const (
	dnsPort   = 53
	httpPort  = 80
	httpsPort = 443
)

// Addresses in a call's network namespace. Names have addresses from synthetic, which is
// not routed (RFC 2544).
var (
	synthetic = netip.MustParsePrefix("198.18.0.0/15")
	// Own is the call's own address.
	Own = netip.MustParseAddr("198.18.0.1")
	// DNS is the address of the call's name server, on UDP and TCP.
	DNS = netip.MustParseAddrPort("127.0.0.53:53")
	// firstName is the address of the first exact name; firstFound that of the first
	// name that was found by a wildcard or is asked about.
	firstName  = netip.MustParseAddr("198.18.1.1")
	firstFound = netip.MustParseAddr("198.19.0.1")
)

// MaxFound bounds the names below wildcards, and names that are asked about, for which
// one call gets an address. This also bounds what a call can leak to a name server by
// its queries.
const MaxFound = 256

// MaxListeners bounds the listening sockets of a call.
const MaxListeners = 160

// Plan describes a call's network namespace.
type Plan struct {
	// Routes are networks all of whose addresses are local in the namespace.
	Routes []netip.Prefix
	// Listen are the listening TCP sockets. The call's own servers cannot use the port
	// of an unspecified address.
	Listen []netip.AddrPort
}

// Exact returns the addresses of the exact names among grants, assigned in order.
func Exact(grants []Grant) map[string]netip.Addr {
	names := map[string]netip.Addr{}
	next := firstName
	for _, g := range grants {
		if _, isNet := g.Prefix(); isNet || g.Wildcard() {
			continue
		}
		if _, known := names[g.Host]; !known {
			names[g.Host] = next
			next = next.Next()
		}
	}
	return names
}

// FoundAddr returns the address of the n-th name that a call has found, from 0.
func FoundAddr(n int) netip.Addr {
	b := firstFound.As4()
	v := uint32(b[2])<<8 | uint32(b[3]) + uint32(n)
	return netip.AddrFrom4([4]byte{b[0], b[1], byte(v >> 8), byte(v)})
}

// Arrange plans the namespace of a call with grants from Normalize. ask adds the
// ports of names that people may be asked about.
func Arrange(grants []Grant, ask bool) (Plan, error) {
	p := Plan{Routes: []netip.Prefix{synthetic}}
	for _, g := range grants {
		if prefix, isNet := g.Prefix(); isNet && !prefix.Addr().IsLoopback() {
			p.Routes = append(p.Routes, prefix)
		}
	}
	whole4, whole6 := wholePorts(grants, ask)
	if whole4[dnsPort] {
		return Plan{}, fmt.Errorf("a network grant takes port 53 of all addresses, where the call's own name server answers: grant single addresses on it")
	}
	names := Exact(grants)
	for _, g := range grants {
		addr := names[g.Host]
		if prefix, isNet := g.Prefix(); isNet {
			addr = prefix.Addr()
		}
		for _, port := range g.Ports {
			at := netip.AddrPortFrom(addr, port)
			if addr.Is4() && whole4[port] || addr.Is6() && whole6[port] || !addr.IsValid() || slices.Contains(p.Listen, at) {
				continue
			}
			p.Listen = append(p.Listen, at)
		}
	}
	for _, port := range ports(whole4) {
		p.Listen = append(p.Listen, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
	}
	for _, port := range ports(whole6) {
		p.Listen = append(p.Listen, netip.AddrPortFrom(netip.IPv6Unspecified(), port))
	}
	if len(p.Listen) > MaxListeners {
		return Plan{}, fmt.Errorf("network grants take %d listening sockets, more than the %d that a call can have: give names fewer ports, or grant a wildcard", len(p.Listen), MaxListeners)
	}
	return p, nil
}

// wholePorts are those that grants take on all addresses, of IPv4 and of IPv6.
func wholePorts(grants []Grant, ask bool) (whole4, whole6 map[uint16]bool) {
	whole4, whole6 = map[uint16]bool{}, map[uint16]bool{}
	if ask {
		for _, port := range defaultPorts {
			whole4[port] = true
		}
	}
	for _, g := range grants {
		prefix, isNet := g.Prefix()
		for _, port := range g.Ports {
			switch {
			case g.Wildcard(), isNet && !prefix.IsSingleIP() && prefix.Addr().Is4():
				whole4[port] = true
			case isNet && !prefix.IsSingleIP():
				whole6[port] = true
			}
		}
	}
	return whole4, whole6
}

// Taken returns the ports that the call's own servers cannot use.
func (p Plan) Taken() (list []uint16) {
	for _, at := range p.Listen {
		if at.Addr().IsUnspecified() {
			list = append(list, at.Port())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func ports(set map[uint16]bool) (list []uint16) {
	for port := range set {
		list = append(list, port)
	}
	slices.Sort(list)
	return list
}

// Inspection says what a connection must begin with.
type Inspection int

// Inspections.
const (
	uninspected Inspection = iota
	TLSName                // a ClientHello for the name (RFC 8446, RFC 6066)
	HTTPHost               // HTTP/1 requests for the name (RFC 9112)
)

// Inspect returns what connections to a port by the grant must begin with.
func (g Grant) Inspect(port uint16) Inspection {
	_, isNet := g.Prefix()
	switch {
	case g.AnySNI || isNet:
		return uninspected
	case port == httpsPort || g.TLS:
		return TLSName
	case port == httpPort:
		return HTTPHost
	}
	return uninspected
}

// Find returns the grant by which a name may be reached on a port: an exact one, else
// the longest wildcard.
func Find(grants []Grant, name string, port uint16) (best Grant, ok bool) {
	for _, g := range grants {
		if _, isNet := g.Prefix(); isNet || !g.HasPort(port) || !g.Matches(name) {
			continue
		}
		if !ok || !g.Wildcard() && best.Wildcard() || g.Wildcard() == best.Wildcard() && len(g.Host) > len(best.Host) {
			best, ok = g, true
		}
	}
	return best, ok
}

// FindAddr returns a grant by which an address may be reached on a port.
func FindAddr(grants []Grant, to netip.AddrPort) (Grant, bool) {
	for _, g := range grants {
		if prefix, isNet := g.Prefix(); isNet && g.HasPort(to.Port()) && prefix.Contains(to.Addr()) {
			return g, true
		}
	}
	return Grant{}, false
}

// Knows reports whether any grant is for a name, on any port.
func Knows(grants []Grant, name string) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool {
		_, isNet := g.Prefix()
		return !isNet && g.Matches(name)
	})
}
