package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// reach is the value of a network key.
type reach struct {
	mode   string
	grants []network.Grant
	ask    bool
}

// askWord is a key, which somebody may write where a name belongs.
const askWord = "ask"

// networkKey is a tool's.
var networkKey = &key{
	name: "network", kind: networkKind, std: sandbox.NetworkNone, process: true,
	doc: "none, the host's, or what it may reach by name: `[api.github.com, \"*.pypi.org:443\", 10.0.0.5:5432]`, see [network](#network)",
	sets: to(func(t *Tool, s setting) {
		r := s.data.(reach)
		ask := t.Sandbox.AskNetwork && s.source.Layer == LayerFlag && r.mode == sandbox.NetworkGrants // of the layers below
		t.Sandbox.Network, t.Sandbox.Grants, t.Sandbox.AskNetwork = r.mode, slices.Clone(r.grants), r.ask || ask
	}),
}

// ceilingKey bounds what all of them may have.
var ceilingKey = &key{
	name: "network", kind: ceilingKind, std: "host", restart: true, doc: "ceiling of every call's `network`: none, host, or a list of names and addresses; a grant beyond it is refused",
	sets: to(func(l *Loaded, s setting) {
		r := s.data.(reach)
		l.Config.Ceiling = supervisor.Ceiling{Network: r.mode, Grants: r.grants, Source: s.source.String()}
	}),
}

// hostLimitKeys are those of limits in the file: of all calls, and over them.
var hostLimitKeys = append(limitKeys[:len(limitKeys):len(limitKeys)], ceilingKey)

// networkHostKeys are the file's own.
var networkHostKeys = []*key{
	{
		name: "deny", kind: prefixesKind, std: "[]", restart: true, doc: "networks that no granted name may lead to, in addition to private and local ones, such as public addresses of your own; `203.0.113.7/24` is all of `203.0.113.0/24`",
		sets: to(func(l *Loaded, s setting) { l.Config.DenyNetworks = prefixesOf(s.data.([]string)) }),
	},
}

func grantSchema() *jsonschema.Schema {
	port := &jsonschema.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(65535.0)}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{textSchema(), {
		Type: "object", Required: []string{"name"}, AdditionalProperties: nothingMore(),
		PropertyOrder: []string{"name", "ports", "tls", "sni", "force"},
		Properties: map[string]*jsonschema.Schema{
			"name":  {Type: "string", Description: "A name, *.NAME, an address or a network."},
			"ports": listSchema(port),
			"tls":   {Type: "boolean", Description: "Connections to other ports begin with TLS for the name, too."},
			"sni":   {Enum: []any{"any"}, Description: "any turns the check of names in TLS and HTTP off."},
			"force": {Type: "boolean", Description: "Allow a wildcard over a public suffix."},
		},
	}}}
}

func networkSchema(words ...any) []*jsonschema.Schema {
	return []*jsonschema.Schema{{Enum: words}, listSchema(grantSchema())}
}

var networkKind = &kind{
	name: "none, host, or a list of names and addresses",
	schema: &jsonschema.Schema{AnyOf: append(networkSchema(sandbox.NetworkNone, sandbox.NetworkHost), &jsonschema.Schema{
		Type: "object", AdditionalProperties: nothingMore(), PropertyOrder: []string{"grants", askWord},
		Properties: map[string]*jsonschema.Schema{
			"grants": listSchema(grantSchema()),
			askWord:  {Type: "boolean", Description: "Ask a human about connections to other names."},
		},
	})},
	read: func(r *reader, n *node) (any, string) {
		switch {
		case n.shape == mapping:
			return r.networkMapping(n)
		case n.shape == str && n.value == askWord:
			return nil, "is part of a mapping: write {ask: true}, or {grants: [api.example.com], ask: true}"
		}
		return r.network(n, r.callGrants)
	},
}

var ceilingKind = &kind{
	name: networkKind.name, schema: &jsonschema.Schema{AnyOf: networkSchema(sandbox.NetworkNone, sandbox.NetworkHost)},
	read: func(r *reader, n *node) (any, string) { return r.network(n, r.grantList) },
}

// network reads a word or a list of grants, as grants does that.
func (r *reader) network(n *node, grants func(*node) ([]network.Grant, string)) (any, string) {
	switch {
	case n.shape == str && (n.value == sandbox.NetworkNone || n.value == sandbox.NetworkHost):
		return reach{mode: n.value}, ""
	case n.shape == list:
		got, wrong := grants(n)
		if len(got) == 0 {
			return reach{mode: sandbox.NetworkNone}, wrong
		}
		return reach{mode: sandbox.NetworkGrants, grants: got}, wrong
	case n.shape == str:
		return nil, "is unknown: must be none, host, or a list such as [api.example.com, \"*.example.org:443\"]"
	}
	return nil, "is neither none nor host nor a list of names: write [api.example.com]"
}

func (r *reader) networkMapping(n *node) (any, string) {
	if _, repeated := r.distinct(n); repeated {
		return nil, reported
	}
	got := reach{mode: sandbox.NetworkGrants}
	for _, e := range n.entries {
		wrong := ""
		switch e.key.value {
		case "grants":
			if e.value.shape != list {
				wrong = "is not a list: write [api.example.com]"
				break
			}
			got.grants, wrong = r.callGrants(e.value)
		case askWord:
			got.ask = e.value.value == "true"
			if e.value.shape != boolean {
				wrong = "is neither true nor false: write one of them, without quotes"
			}
		default:
			return nil, "has the unknown key " + quoted(e.key.value) + ": it can have grants and ask"
		}
		if wrong == reported {
			return nil, reported
		}
		if wrong != "" {
			r.refuse(e.value, wrong)
			return nil, reported
		}
	}
	if len(got.grants) == 0 && !got.ask {
		got.mode = sandbox.NetworkNone
	}
	return got, ""
}

func (r *reader) grantList(n *node) (grants []network.Grant, wrong string) {
	if len(n.items) > maxItems {
		return nil, "has more than 256 items: give fewer"
	}
	for _, item := range n.items {
		if _, repeated := r.distinct(item); repeated {
			wrong = reported
			continue
		}
		g, why := grantOf(item)
		if why != "" {
			r.complain(item, "%s", why)
			wrong = reported
			continue
		}
		grants = append(grants, g)
	}
	return grants, wrong
}

// callGrants are those that one call can have at once. Those of a ceiling need not be.
func (r *reader) callGrants(n *node) ([]network.Grant, string) {
	grants, wrong := r.grantList(n)
	if wrong != "" {
		return nil, wrong
	}
	grants, err := network.Normalize(grants)
	if err == nil {
		_, err = network.Arrange(grants, false)
	}
	if err != nil {
		r.complain(n, "%v", err)
		return nil, reported
	}
	return grants, ""
}

// grantFields are the keys of a grant that is written as a mapping.
var grantFields = []string{"name", "ports", "tls", "sni", "force"}

// unquoted is the text that a list in brackets holds as a mapping of one entry:
// [db:5432].
func unquoted(n *node) *node {
	if n.shape != mapping || len(n.entries) != 1 || slices.Contains(grantFields, n.entries[0].key.value) {
		return n
	}
	e := n.entries[0]
	if e.value.shape != number && (e.value.shape != str || strings.Trim(e.value.value, "0123456789,") != "") {
		return n
	}
	one := *n
	one.shape, one.entries, one.value = str, nil, e.key.value+":"+e.value.value
	return &one
}

func grantOf(n *node) (g network.Grant, wrong string) {
	n = unquoted(n)
	switch n.shape {
	case str:
		if n.value == sandbox.NetworkNone || n.value == sandbox.NetworkHost {
			if n.file.layer == LayerFlag {
				return g, fmt.Sprintf("%s %s says all of the network, and there is another %[1]s: leave one of them out", n.file.name, n.value)
			}
			return g, quoted(n.value) + " is a word for the whole network, and no name: write network: " + n.value
		}
		if n.value == askWord {
			const instead = "write network: {ask: true} for a tool in toolhost.yaml, or, for a host of that name, ask:443,80"
			if n.file.layer == LayerFlag {
				return g, n.file.name + " ask does not say which name: " + instead
			}
			return g, quoted(n.value) + " is a key beside grants, not a name: " + instead
		}
		g, err := network.Parse(n.value)
		if err != nil {
			return g, err.Error()
		}
		return g, ""
	case mapping:
		return grantMapping(n)
	}
	return g, "a network grant is a name such as api.example.com:443, in quotes where it begins with *"
}

func grantMapping(n *node) (g network.Grant, wrong string) {
	for _, e := range n.entries {
		v := e.value
		switch e.key.value {
		case "name":
			g.Host = v.value
		case "ports":
			if g.Ports, wrong = portsOf(v); wrong != "" {
				return g, wrong
			}
		case "tls", "force":
			if v.shape != boolean {
				return g, e.key.value + " of a network grant is neither true nor false: write one of them, without quotes"
			}
			if on := v.value == "true"; e.key.value == "tls" {
				g.TLS = on
			} else {
				g.Force = on
			}
		case "sni":
			if v.value != "any" {
				return g, "sni " + quoted(v.value) + " of a network grant is unknown: it can be any, or left out"
			}
			g.AnySNI = true
		default:
			return g, "a network grant has the unknown key " + quoted(e.key.value) + ": it can have name, ports, tls, sni and force"
		}
	}
	if strings.Contains(g.Host, ":") {
		if _, isNet := g.Prefix(); !isNet {
			return g, "name " + quoted(g.Host) + " of a network grant has a port: write it in ports"
		}
	}
	g, err := g.Normal()
	if err != nil {
		return g, err.Error()
	}
	return g, ""
}

func portsOf(n *node) (ports []uint16, wrong string) {
	items := n.items
	if n.shape == number {
		items = []*node{n}
	}
	for _, item := range items {
		v, wrong := parseCount(item.value)
		if wrong != "" || v.(int64) > 65535 {
			return nil, "port " + quoted(item.value) + " of a network grant is not one: write numbers from 1 to 65535"
		}
		ports = append(ports, uint16(v.(int64)))
	}
	if len(ports) == 0 {
		return nil, "ports of a network grant are not a list: write [443]"
	}
	return ports, ""
}

var prefixKindOfNetwork = &kind{name: "network", schema: plainPrefix.schema, read: func(r *reader, n *node) (any, string) {
	return plainPrefix.read(r, unquoted(n))
}}

// ipv4InIPv6 refuses a network that holds no address, since IPv4 is compared as IPv4.
const ipv4InIPv6 = "is IPv4 in IPv6: write it as IPv4, such as 203.0.113.0/24"

var plainPrefix = scalar("network", `^[0-9A-Fa-f:.]+(/[0-9]+)?$`, func(s string) (any, string) {
	p, err := prefixOf(s)
	if err != nil {
		return nil, "is not a network: write one such as 203.0.113.0/24"
	}
	if p.Addr().Is4In6() {
		return nil, ipv4InIPv6
	}
	return p.Masked().String(), ""
})

var prefixesKind = listOf("list of networks", prefixKindOfNetwork)

// prefixOf reads a network, or an address as the network that has it alone.
func prefixOf(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// prefixesOf are networks that a kind has read.
func prefixesOf(list []string) (prefixes []netip.Prefix) {
	for _, s := range list {
		p, _ := prefixOf(s)
		prefixes = append(prefixes, p)
	}
	return prefixes
}

// LimitsNetwork says whether a key of a tool's bounds what its calls do with their
// network grants.
func LimitsNetwork(name string) bool {
	return slices.ContainsFunc(networkLimitKeys, func(k *key) bool { return k.name == name })
}

// networkLimitKeys bound what one call does with its grants.
var networkLimitKeys = []*key{
	amount(&key{
		name: "connections", kind: countKind, std: "64", doc: "connections of a call with network grants at once; more are refused",
	}, func(l *supervisor.Limits) *int64 { return &l.Network.Connections }),
	amount(&key{
		name: "connectionsTotal", kind: countKind, std: "(none)", doc: "connections of such a call in total; a call over it is killed",
	}, func(l *supervisor.Limits) *int64 { return &l.Network.TotalConnections }),
	amount(&key{
		name: "sent", kind: sizeKind, std: "(none)", doc: "bytes that such a call may send; a call over it is killed",
	}, func(l *supervisor.Limits) *int64 { return &l.Network.SentBytes }),
	amount(&key{
		name: "received", kind: sizeKind, std: "(none)", doc: "bytes that such a call may receive; a call over it is killed",
	}, func(l *supervisor.Limits) *int64 { return &l.Network.ReceivedBytes }),
	amount(&key{
		name: "networkRate", kind: sizeKind, std: "(none)", doc: "bytes per second of such a call, both ways together; more wait",
	}, func(l *supervisor.Limits) *int64 { return &l.Network.Rate }),
	field(key{name: "connectionIdle", kind: durationKind, std: "10m", process: true, doc: "how long a connection of such a call may be idle before it is closed"},
		func(t *Tool) *time.Duration { return &t.Limits.Network.Idle }),
	field(key{name: "connectTimeout", kind: durationKind, std: "10s", process: true, doc: "how long connecting may take for such a call, at most 60s"},
		func(t *Tool) *time.Duration { return &t.Limits.Network.Dial }),
}
