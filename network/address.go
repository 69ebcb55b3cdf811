package network

import (
	"net/netip"
)

// special are networks that a name must not lead to, with what they are. The
// first that fits counts.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("169.254.169.254/32"), "a metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata service"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a metadata service"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "IPv4 in IPv6"},
	{netip.MustParsePrefix("::/96"), "IPv4 in IPv6"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4 in IPv6"},
	{netip.MustParsePrefix("64:ff9b::/96"), "translated to IPv4"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translated to IPv4"},
	{netip.MustParsePrefix("2001::/32"), "a tunnel to IPv4"},
	{netip.MustParsePrefix("2002::/16"), "a tunnel to IPv4"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a tunnel to IPv4"},
	{netip.MustParsePrefix("100::/64"), "reserved"},
}

// Reach decides to which addresses a call may connect. Its zero value allows
// public addresses only.
type Reach struct {
	// Granted are the call's grants. Granted addresses and networks are allowed on
	// their ports, even if they are not public.
	Granted []Grant
	// Deny are networks that the operator denies; Translated are prefixes that a NAT64
	// of this network translates to IPv4; Own are the addresses of this machine.
	Deny, Translated []netip.Prefix
	Own              []netip.Addr
	// MayTranslate is set if Translated is not known: only IPv6 addresses that are
	// granted themselves are then allowed.
	MayTranslate bool
}

// Refuse returns "" if the address is allowed, else what kind of address it is, for
// messages.
func (r Reach) Refuse(to netip.AddrPort) string {
	addr := to.Addr().WithZone("")
	mapped := addr.Is4In6()
	for _, g := range r.Granted {
		if prefix, ok := g.Prefix(); ok && g.HasPort(to.Port()) && prefix.Contains(addr.Unmap()) {
			return ""
		}
	}
	if mapped {
		addr = addr.Unmap()
	}
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.kind
		}
	}
	for _, own := range r.Own {
		if own.WithZone("").Unmap() == addr {
			return "the host's own"
		}
	}
	for _, prefix := range r.Translated {
		if prefix.Contains(addr) {
			return "translated to IPv4"
		}
	}
	for _, prefix := range r.Deny {
		if unmapped(prefix).Contains(addr) {
			return "denied by the operator"
		}
	}
	switch {
	case mapped:
		return "IPv4 in IPv6"
	case r.MayTranslate && addr.Is6():
		return "perhaps translated to IPv4, since the resolver says nothing about " + TranslationName
	}
	return ""
}

// unmapped is a network of IPv4 addresses that is written as one of IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// TranslationName is a name with IPv4 addresses only: an IPv6 address for it comes from
// a NAT64 (RFC 7050).
const TranslationName = "ipv4only.arpa"

// wellKnown are the IPv4 addresses of ipv4only.arpa (RFC 7050).
var wellKnown = []netip.Addr{netip.MustParseAddr("192.0.0.170"), netip.MustParseAddr("192.0.0.171")}

// TranslatedPrefixes returns the NAT64 prefixes of this network, from the addresses found
// for TranslationName (RFC 7050, section 3; RFC 6052, 2.2).
func TranslatedPrefixes(found []netip.Addr) (list []netip.Prefix) {
	for _, addr := range found {
		if !addr.Is6() || addr.Is4In6() {
			continue
		}
		b := addr.As16()
		for _, bits := range []int{96, 64, 56, 48, 40, 32} {
			var four [4]byte
			at := bits / 8
			for i := range four {
				if at == 8 { // bits 64 to 71 are zero in every form
					at++
				}
				four[i] = b[at]
				at++
			}
			if v4 := netip.AddrFrom4(four); v4 == wellKnown[0] || v4 == wellKnown[1] {
				list = append(list, netip.PrefixFrom(addr, bits).Masked())
				break
			}
		}
	}
	return list
}
