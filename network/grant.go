package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// maxPorts bounds the different ports of a call's grants, and MaxGrants the grants.
const (
	maxPorts  = 32
	MaxGrants = 128
)

// defaultPorts are those of a grant that names none.
var defaultPorts = []uint16{443, 80}

// Grant lets a call reach a name, all names below a name, an address or a network,
// on some ports. Parse and Grant.Normal return valid grants.
type Grant struct {
	// Host is a name in ASCII and lower case without a trailing dot, such a name
	// after "*." for all names below it at any depth, an address, or a network
	// (10.0.0.0/8).
	Host string `json:"name"`
	// Ports are sorted.
	Ports []uint16 `json:"ports,omitempty"`
	// TLS requires TLS for the name on ports other than 443, too.
	TLS bool `json:"tls,omitempty"`
	// AnySNI turns off the check of names in TLS and HTTP.
	AnySNI bool `json:"anySni,omitempty"`
	// Force allows a wildcard over a public suffix, below which anybody can register
	// a name.
	Force bool `json:"force,omitempty"`
}

// String returns the short form, followed by TLS and AnySNI in brackets if they are set.
func (g Grant) String() string {
	var b strings.Builder
	b.WriteString(g.Host)
	if len(g.Ports) > 0 && !slices.Equal(g.Ports, sorted(defaultPorts)) {
		if prefix, ok := g.Prefix(); ok && prefix.Addr().Is6() {
			b.Reset()
			b.WriteString("[" + g.Host + "]")
		}
		for i, port := range g.Ports {
			b.WriteString(map[bool]string{true: ":", false: ","}[i == 0] + strconv.Itoa(int(port)))
		}
	}
	for _, o := range []struct {
		on   bool
		word string
	}{{g.TLS, "tls"}, {g.AnySNI, "sni any"}} {
		if o.on {
			b.WriteString(" (" + o.word + ")")
		}
	}
	return b.String()
}

// UnmarshalJSON accepts an object or a string with the short form.
func (g *Grant) UnmarshalJSON(raw []byte) error {
	var short string
	if json.Unmarshal(raw, &short) == nil {
		parsed, err := Parse(short)
		*g = parsed
		return err
	}
	type plain Grant
	return json.Unmarshal(raw, (*plain)(g))
}

// Prefix returns the address or network of a grant; ok is false for names.
func (g Grant) Prefix() (p netip.Prefix, ok bool) {
	if addr, err := netip.ParseAddr(g.Host); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(g.Host)
	return p, err == nil
}

// Wildcard reports whether the grant is for all names below a name.
func (g Grant) Wildcard() bool { return strings.HasPrefix(g.Host, "*.") }

// HasPort reports whether the grant includes the port.
func (g Grant) HasPort(port uint16) bool { return slices.Contains(g.Ports, port) }

// Matches reports whether the grant is for a name, which must be in the form of
// Grant.Host.
func (g Grant) Matches(name string) bool {
	if suffix, ok := strings.CutPrefix(g.Host, "*"); ok {
		return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	}
	return g.Host == name
}

// Parse parses the short form of a grant: name[:ports], *.name[:ports],
// address[:ports] or network[:ports], where ports are numbers separated by commas. An
// IPv6 address with ports must be in brackets.
func Parse(short string) (Grant, error) {
	host, ports, err := split(short)
	if err != nil {
		return Grant{}, fmt.Errorf("network grant %q %w", short, err)
	}
	g, err := Grant{Host: host, Ports: ports}.Normal()
	if err != nil {
		return Grant{}, err
	}
	return g, nil
}

func split(short string) (host string, ports []uint16, err error) {
	host, list := short, ""
	switch {
	case strings.Contains(short, "://"):
		return "", nil, errors.New("is a URL: write the name alone, such as api.example.com:443")
	case strings.HasPrefix(short, "["):
		inside, rest, ok := strings.Cut(short[1:], "]")
		if !ok || rest != "" && !strings.HasPrefix(rest, ":") {
			return "", nil, errors.New("has an unmatched bracket: write [ADDRESS]:PORT")
		}
		host, list = inside, strings.TrimPrefix(rest, ":")
		if rest == ":" {
			return "", nil, errors.New("has no port after the colon: write one, or leave the colon out")
		}
	case strings.Count(short, ":") == 1:
		host, list, _ = strings.Cut(short, ":")
		if list == "" {
			return "", nil, errors.New("has no port after the colon: write one, or leave the colon out")
		}
	}
	if list == "" {
		return host, nil, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		port, err := strconv.ParseUint(word, 10, 16)
		if err != nil || port == 0 {
			return "", nil, fmt.Errorf("has the port %q: write numbers from 1 to 65535 with commas between them", word)
		}
		ports = append(ports, uint16(port))
	}
	return host, ports, nil
}

func sorted(ports []uint16) []uint16 {
	ports = slices.Clone(ports)
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Normal returns g with its host in normal form and its ports set. It returns an error if
// g cannot be granted.
func (g Grant) Normal() (Grant, error) {
	wrong := func(err error) (Grant, error) {
		return Grant{}, fmt.Errorf("network grant %q %w", g.Host, err)
	}
	given := g.Ports
	if len(given) == 0 {
		given = defaultPorts
	}
	g.Ports = sorted(given)
	if g.Ports[0] == 0 {
		return wrong(errors.New("has port 0: write numbers from 1 to 65535"))
	}
	if _, ok := g.Prefix(); ok {
		return g.normalPrefix()
	}
	if looksNumeric(g.Host) {
		return wrong(errors.New("is neither a name nor an address: write a name such as api.example.com:443, an address such as 192.0.2.1, or a network such as 192.0.2.0/24"))
	}
	rest, wild := strings.CutPrefix(g.Host, "*.")
	name, err := Name(rest)
	if err != nil {
		return wrong(err)
	}
	g.Host = name
	if !wild {
		return g, nil
	}
	g.Host = "*." + name
	if g.HasPort(dnsPort) {
		return wrong(errors.New("is for all names below one on port 53, where the call's own name server answers: name each server"))
	}
	if suffix, icann := publicsuffix.PublicSuffix(name); suffix == name && (icann || strings.Contains(suffix, ".")) && !g.Force {
		return wrong(fmt.Errorf("is for all names below the public suffix %s, where anybody can have one: grant a longer name, or write {name: %q, force: true} for a tool in toolhost.yaml", name, g.Host))
	}
	return g, nil
}

// looksNumeric is for what some programs would take for an address.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	last = strings.TrimSuffix(last, ".")
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Contains(host, "/") || strings.Contains(host, ":")
}

// Widest networks that can be granted: more is the host's whole network.
const (
	widestBits4 = 8
	widestBits6 = 16
)

func (g Grant) normalPrefix() (Grant, error) {
	prefix, _ := g.Prefix()
	wrong := func(format string, args ...any) (Grant, error) {
		return Grant{}, fmt.Errorf("network grant %q %s", g.Host, fmt.Sprintf(format, args...))
	}
	addr := prefix.Addr()
	switch {
	case strings.Contains(g.Host, "%"):
		return wrong("has a zone, which calls do not have: leave out what follows %%")
	case addr.Is4In6():
		return wrong("is an IPv4 address in IPv6: write %s", addr.Unmap())
	case prefix.Masked() != prefix:
		return wrong("has bits beyond its length: write %s, or %s", prefix.Masked(), addr)
	case addr.Is4() && prefix.Bits() < widestBits4, addr.Is6() && prefix.Bits() < widestBits6:
		return wrong("is wider than a /%d: grant smaller networks, or network: host", map[bool]int{true: widestBits4, false: widestBits6}[addr.Is4()])
	case prefix.Overlaps(synthetic):
		return wrong("overlaps %s, from which calls have their own addresses", synthetic)
	case prefix.Contains(DNS.Addr()) && !prefix.IsSingleIP() && g.HasPort(dnsPort), prefix.IsSingleIP() && addr == DNS.Addr():
		return wrong("is where the call's own name server answers")
	case addr.Is6() && addr.IsLinkLocalUnicast():
		return wrong("is link-local, which needs an interface: grant another address")
	case addr.IsUnspecified():
		return wrong("is the unspecified address, where nothing is reached")
	}
	g.Host = prefix.String()
	if prefix.IsSingleIP() {
		g.Host = addr.String()
	}
	if g.TLS {
		return wrong("has tls, which checks a name: grant the name")
	}
	return g, nil
}

// profile takes -- where only xn-- should be: names of services have it there.
var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true), idna.CheckHyphens(false))

// Name returns the normal form of a name: ASCII, lower case, without a trailing dot.
func Name(s string) (string, error) {
	name := strings.TrimSuffix(s, ".")
	switch {
	case name == "":
		return "", errors.New("is empty: write a name such as api.example.com")
	case name == "*" || strings.Contains(name, "*"):
		return "", errors.New("has * elsewhere than in front: write *.example.com, or network: host for everything")
	case len(name) > 1024:
		return "", errors.New("is longer than a name can be")
	case !utf8.ValidString(name):
		return "", errors.New("is not valid UTF-8: write a name such as api.example.com")
	}
	ascii, err := toASCII(name)
	if err != nil {
		return "", fmt.Errorf("is not a name: %v; write one such as api.example.com", err)
	}
	if strings.HasPrefix(ascii, "-") || strings.HasSuffix(ascii, "-") || strings.Contains(ascii, ".-") || strings.Contains(ascii, "-.") {
		return "", errors.New("is not a name: - is at the beginning or the end of a part; write one such as api.example.com")
	}
	if strings.HasSuffix(ascii, ".") { // of two, or of another script
		return "", errors.New("has more than one dot at its end: write a name such as api.example.com")
	}
	if ascii == "localhost" || strings.HasSuffix(ascii, ".localhost") {
		return "", errors.New("is each call's own: to reach the host's loopback grant an address, such as 127.0.0.1:8080")
	}
	return ascii, nil
}

// toASCII takes underscores, too, which names of hosts must not have (RFC 952) and some do.
func toASCII(name string) (string, error) {
	foreign := func(r rune) bool { return r >= utf8.RuneSelf }
	if !strings.Contains(name, "_") || strings.ContainsFunc(name, foreign) {
		return profile.ToASCII(name)
	}
	if _, err := profile.ToASCII(strings.ReplaceAll(name, "_", "x")); err != nil {
		return "", err
	}
	return strings.ToLower(name), nil
}

// Normalize checks a list of grants, and merges grants of the same host.
func Normalize(list []Grant) ([]Grant, error) {
	var all []Grant
	ports := map[uint16]bool{}
	for _, g := range list {
		g, err := g.Normal()
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(have Grant) bool {
			return have.Host == g.Host && have.TLS == g.TLS && have.AnySNI == g.AnySNI
		})
		if at >= 0 {
			all[at].Ports = sorted(append(slices.Clone(all[at].Ports), g.Ports...))
		} else {
			all = append(all, g)
		}
		for _, port := range g.Ports {
			ports[port] = true
		}
	}
	if len(all) > MaxGrants {
		return nil, fmt.Errorf("%d network grants are more than the %d that a call can have: grant a wildcard or a network", len(all), MaxGrants)
	}
	if len(ports) > maxPorts {
		return nil, fmt.Errorf("network grants with %d different ports are more than the %d that a call can have: leave some out", len(ports), maxPorts)
	}
	return all, nil
}
