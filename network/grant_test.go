package network

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for short, want := range map[string]string{
		"api.github.com":         "api.github.com",
		"API.GitHub.com.":        "api.github.com",
		"api.github.com:443":     "api.github.com:443",
		"git.test:22,443,22":     "git.test:22,443",
		"*.pypi.org:443":         "*.pypi.org:443",
		"bücher.example":         "xn--bcher-kva.example",
		"Under_Score.Example":    "under_score.example",
		"*._tcp.example:80":      "*._tcp.example:80",
		"*.Bücher.example:80":    "*.xn--bcher-kva.example:80",
		"db:5432":                "db:5432",
		"*.corp":                 "*.corp",
		"10.1.2.3":               "10.1.2.3",
		"10.1.2.3:8080":          "10.1.2.3:8080",
		"10.1.0.0/16:22":         "10.1.0.0/16:22",
		"10.1.2.3/32":            "10.1.2.3",
		"127.0.0.1:5432":         "127.0.0.1:5432",
		"2001:db8::1":            "2001:db8::1",
		"[2001:db8::1]:8443":     "[2001:db8::1]:8443",
		"[2001:db8::/32]:22":     "[2001:db8::/32]:22",
		"2001:db8::/32":          "2001:db8::/32",
		"api.github.com:443,80":  "api.github.com",
		"a.b.c.d.e.f.example:1":  "a.b.c.d.e.f.example:1",
		"xn--bcher-kva.example.": "xn--bcher-kva.example",
		"v1---svc-uc.a.run.app":  "v1---svc-uc.a.run.app",
		"*.r3---sn-4g5.example":  "*.r3---sn-4g5.example",
	} {
		g, err := Parse(short)
		if err != nil || g.String() != want {
			t.Errorf("%q: %q, %v; want %q", short, g, err, want)
		}
		if again, err := Parse(want); err != nil || !slices.Equal(again.Ports, g.Ports) || again.Host != g.Host {
			t.Errorf("%q again: %+v, %v", want, again, err)
		}
	}
}

func TestWhatCannotBeGranted(t *testing.T) {
	for short, wants := range map[string]string{
		"":                                   "is empty",
		"*":                                  "network: host",
		"*.":                                 "is empty",
		"*.com":                              "{name: \"*.com\", force: true} for a tool in toolhost.yaml",
		"*.co.uk":                            "public suffix",
		"*.github.io":                        "public suffix",
		"a.*.example.com":                    "elsewhere than in front",
		"**.example.com":                     "elsewhere than in front",
		"https://api.github.com":             "is a URL",
		"api.github.com:":                    "no port",
		"api.github.com:0":                   "1 to 65535",
		"api.github.com:https":               "1 to 65535",
		"api.github.com:65536":               "1 to 65535",
		"api.github.com:443,":                "1 to 65535",
		"api.github.com/x":                   "neither a name nor an address",
		"a..b":                               "is not a name",
		"under_score.bücher.example":         "is not a name",
		"under_score .example":               "is not a name",
		"-under_score.example":               "is not a name",
		strings.Repeat("_", 64) + ".example": "is not a name",
		"sp ace.example":                     "is not a name",
		"-a.example":                         "is not a name",
		"a-.example":                         "is not a name",
		"x.-a.example":                       "is not a name",
		"xn--a.example":                      "is not a name",
		"*.a-":                               "is not a name",
		"localhost":                          "each call's own",
		"x.localhost:80":                     "each call's own",
		"LOCALHOST.":                         "each call's own",
		"127.1":                              "neither a name",
		"0x7f000001":                         "neither a name",
		"2130706433":                         "neither a name",
		"1.2.3.4.":                           "neither a name",
		"1.2.3.400":                          "neither a name",
		"10.1.2.3/8":                         "bits beyond",
		"0.0.0.0/0":                          "wider than",
		"::/0":                               "wider than",
		"0.0.0.0":                            "unspecified",
		"198.18.0.1":                         "calls have their own",
		"127.0.0.53:53":                      "name server",
		"127.0.0.0/8:53":                     "name server",
		"[2001:db8::1":                       "bracket",
		"[2001:db8::1]443":                   "bracket",
		"fe80::1%eth0":                       "zone",
		"fe80::1":                            "link-local",
		"::ffff:10.0.0.1":                    "write 10.0.0.1",
		"*.example.com:53":                   "name server",
		strings.Repeat("a", 64) + ".example": "is not a name",
	} {
		if g, err := Parse(short); err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("%q: %+v, %v; want %q", short, g, err, wants)
		}
	}
}

func TestAForcedWildcard(t *testing.T) {
	g, err := Grant{Host: "*.github.io", Force: true}.Normal()
	if err != nil || !g.Matches("a.github.io") || g.Matches("github.io") || g.Matches("xgithub.io") || !g.Matches("a.b.github.io") {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestJSONOfGrants(t *testing.T) {
	var list []Grant
	if err := json.Unmarshal([]byte(`["a.example:22", {"name": "b.example", "ports": [8443], "tls": true}]`), &list); err != nil {
		t.Fatal(err)
	}
	list, err := Normalize(list)
	if err != nil || len(list) != 2 || list[0].String() != "a.example:22" || list[1].String() != "b.example:8443 (tls)" {
		t.Errorf("%v, %v", list, err)
	}
	raw, _ := json.Marshal(list)
	var again []Grant
	if err := json.Unmarshal(raw, &again); err != nil || len(again) != 2 || again[1].String() != list[1].String() {
		t.Errorf("%s: %v, %v", raw, again, err)
	}
}

func parseAll(t *testing.T, shorts ...string) (list []Grant) {
	t.Helper()
	for _, short := range shorts {
		g, err := Parse(short)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, g)
	}
	return list
}

func TestCeiling(t *testing.T) {
	ceiling := parseAll(t, "*.example.com", "api.test:8443", "10.0.0.0/8:22,443")
	for short, covered := range map[string]bool{
		"a.example.com": true, "a.b.example.com:443": true, "example.com": false, "*.a.example.com": true, "*.example.com:80": true,
		"a.example.com:22": false, "api.test:8443": true, "api.test": false, "10.1.2.3:22": true, "10.1.0.0/16:443": true,
		"10.1.2.3:80": false, "11.0.0.1:22": false, "*.com.example": false, "*.test.example": false,
	} {
		if err := Exceeds(ceiling, parseAll(t, short)); (err == nil) != covered {
			t.Errorf("%s: %v", short, err)
		}
	}
	loose := parseAll(t, "a.example.com")
	loose[0].AnySNI = true
	if Exceeds(ceiling, loose) == nil {
		t.Error("a ceiling with checks covers a grant without them")
	}
}

func TestAddressesThatANameMustNotLeadTo(t *testing.T) {
	r := Reach{
		Granted: parseAll(t, "10.9.0.0/24:443", "192.168.7.7:80", "[fd00:9::/64]:443", "x.test"),
		Deny:    []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("::ffff:192.0.2.0/120")}, Translated: []netip.Prefix{netip.MustParsePrefix("2a00:64::/96")},
		Own: []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2a00:1::7")},
	}
	for addr, want := range map[string]string{
		"93.184.216.34:443": "", "[2606:2800:220:1::1]:443": "", "10.9.0.7:443": "", "10.9.0.7:80": "private", "10.9.1.7:443": "private", "192.168.7.7:80": "",
		"127.0.0.1:443": "loopback", "127.8.8.8:1": "loopback", "[::1]:443": "loopback", "0.0.0.0:443": "this network", "[::]:443": "unspecified",
		"169.254.169.254:80": "a metadata service", "168.63.129.16:80": "a metadata service", "[fd00:ec2::254]:80": "a metadata service",
		"169.254.1.1:80": "link-local", "[fe80::1]:80": "link-local", "172.16.0.1:1": "private", "172.32.0.1:1": "", "100.64.0.1:1": "shared by a carrier",
		"192.0.0.8:1": "reserved", "198.18.0.1:1": "for benchmarks", "224.0.0.1:1": "multicast", "255.255.255.255:1": "reserved", "[ff02::1]:1": "multicast",
		"[fc00::1]:1": "private", "[::ffff:127.0.0.1]:1": "loopback", "[::ffff:93.184.216.34]:1": "IPv4 in IPv6", "[::ffff:10.9.0.7]:443": "",
		"[::7f00:1]:1": "IPv4 in IPv6", "[64:ff9b::7f00:1]:1": "translated to IPv4", "[64:ff9b:1::1]:1": "translated to IPv4", "[2002:7f00:1::]:1": "a tunnel to IPv4",
		"[2001:0:1::]:1": "a tunnel to IPv4", "[2a00:64::7f00:1]:443": "translated to IPv4", "203.0.113.9:443": "denied by the operator", "192.0.2.9:443": "denied by the operator",
		"198.51.100.7:443": "the host's own", "[2a00:1::7]:443": "the host's own", "[fd00:9::1]:443": "",
	} {
		if got := r.Refuse(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func TestTranslatedPrefixes(t *testing.T) {
	for addr, want := range map[string]string{
		"64:ff9b::192.0.0.170": "64:ff9b::/96", "2001:db8:1:2:c0:0:aa00::": "2001:db8:1:2::/64", "2001:db8:122:344:c0:0:ab00::": "2001:db8:122:344::/64",
		"2001:db8:c000:aa::": "2001:db8::/32", "2001:db8::1": "",
	} {
		got := ""
		if list := TranslatedPrefixes([]netip.Addr{netip.MustParseAddr(addr)}); len(list) > 0 {
			got = list[0].String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func TestArrange(t *testing.T) {
	grants, err := Normalize(parseAll(t, "a.test", "b.test:22", "*.c.test:443", "10.0.0.0/24:22", "192.0.2.1:25", "127.0.0.1:5432", "[2001:db8::/64]:443"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Arrange(grants, false)
	if err != nil {
		t.Fatal(err)
	}
	var listen []string
	for _, at := range p.Listen {
		listen = append(listen, at.String())
	}
	want := []string{"198.18.1.1:80", "192.0.2.1:25", "127.0.0.1:5432", "0.0.0.0:22", "0.0.0.0:443", "[::]:443"}
	if !slices.Equal(listen, want) {
		t.Errorf("listens on %v, want %v", listen, want)
	}
	if got := p.Taken(); !slices.Equal(got, []uint16{22, 443}) {
		t.Errorf("takes %v", got)
	}
	if len(p.Routes) != 4 {
		t.Errorf("routes %v", p.Routes)
	}
	names := Exact(grants)
	if names["a.test"].String() != "198.18.1.1" || names["b.test"].String() != "198.18.1.2" || len(names) != 2 {
		t.Errorf("names %v", names)
	}
	if FoundAddr(0).String() != "198.19.0.1" || FoundAddr(MaxFound-1).String() != "198.19.1.0" {
		t.Errorf("found names from %s to %s", FoundAddr(0), FoundAddr(MaxFound-1))
	}
}

func TestGrantsAreBounded(t *testing.T) {
	var many []Grant
	for port := range maxPorts + 1 {
		many = append(many, Grant{Host: "a.test", Ports: []uint16{uint16(port + 1)}})
	}
	if _, err := Normalize(many); err == nil || !strings.Contains(err.Error(), "different ports") {
		t.Error(err)
	}
	many = nil
	for i := range MaxGrants + 1 {
		many = append(many, Grant{Host: "a" + string(rune('a'+i%26)) + strings.Repeat("b", i/26) + ".test"})
	}
	if _, err := Normalize(many); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.test:443", "*.pypi.org", "[::1]:80", "10.0.0.0/8:22", "bücher.example", "\xce0", "0..", "a.test\u3002."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(g.String())
		if err != nil || again.Host != g.Host || !slices.Equal(again.Ports, g.Ports) {
			t.Fatalf("%q became %q, then %+v, %v", s, g, again, err)
		}
	})
}
