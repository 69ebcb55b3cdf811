package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
)

var names443 = []network.Grant{{Host: "a.test", Ports: []uint16{443}}, {Host: "*.wild.test", Ports: []uint16{443}}}

func query(t testing.TB, name string, kind dnsmessage.Type, edns bool) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	if edns {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(4096, 0, true); err != nil {
			t.Fatal(err)
		}
		m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	}
	raw, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func unpack(t testing.TB, raw []byte) (m dnsmessage.Message) {
	t.Helper()
	if err := m.Unpack(raw); err != nil {
		t.Fatalf("%x: %v", raw, err)
	}
	return m
}

func TestAnswers(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{}, names443...)
	s.leadTo("a.test", netip.MustParseAddr("203.0.113.1"))
	synthetic := s.names.exact["a.test"]
	for _, test := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string
	}{
		{"a.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, synthetic.String()},
		{"A.Test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, synthetic.String()},
		{"a.test.", dnsmessage.TypeALL, dnsmessage.RCodeSuccess, synthetic.String()},
		{"a.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"a.test.", 65 /* HTTPS */, dnsmessage.RCodeSuccess, ""},
		{"a.test.", dnsmessage.TypeSRV, dnsmessage.RCodeSuccess, ""},
		{"a.test.", dnsmessage.TypeMX, dnsmessage.RCodeSuccess, ""},
		{"a.test.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, ""},
		{"b.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"a.test.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"xa.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"_443._https.a.test.", 65, dnsmessage.RCodeSuccess, ""},
		{"_443._https.b.test.", 65, dnsmessage.RCodeNameError, ""},
		{".", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"wild.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"x.wild.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, network.FoundAddr(0).String()},
		{"x.wild.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"1.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeSuccess, "a.test."},
		{"9.9.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"8.8.8.8.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"x.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"1.0.ip6.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
	} {
		for _, edns := range []bool{false, true} {
			m := unpack(t, s.answerQuery(query(t, test.name, test.kind, edns)))
			got := ""
			for _, a := range m.Answers {
				switch body := a.Body.(type) {
				case *dnsmessage.AResource:
					got += netip.AddrFrom4(body.A).String()
				case *dnsmessage.PTRResource:
					got += body.PTR.String()
				}
			}
			if m.ID != 77 || !m.Response || m.RCode != test.code || got != test.want || (len(m.Additionals) == 1) != edns {
				t.Errorf("%s %v: %v %q, %d additional", test.name, test.kind, m.RCode, got, len(m.Additionals))
			}
		}
	}
}

func TestMalformedQueries(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{}, names443...)
	good := query(t, "a.test.", dnsmessage.TypeA, false)
	loop := append(append([]byte(nil), good[:12]...), 0xc0, 12, 0, 1, 0, 1)
	two := append([]byte(nil), good...)
	two[5] = 2
	none := append([]byte(nil), good...)
	none[5] = 0
	for what, raw := range map[string][]byte{
		"cut": good[:len(good)-3], "a pointer to itself": loop, "two questions of which one is there": two, "no question": none,
		"a header": good[:12], "less": {0, 77, 1}, "an additional that is not there": append(append([]byte(nil), good[:11]...), append([]byte{1}, good[12:]...)...),
	} {
		if m := unpack(t, s.answerQuery(raw)); m.RCode != dnsmessage.RCodeFormatError || m.ID != 77 {
			t.Errorf("%s: %v of %d", what, m.RCode, m.ID)
		}
	}
	answer := append([]byte(nil), good...)
	answer[2] |= 0x80
	update := append([]byte(nil), good...)
	update[2] |= 5 << 3
	if s.answerQuery(answer) != nil || s.answerQuery([]byte{1}) != nil {
		t.Error("an answer, or one byte, was answered")
	}
	if m := unpack(t, s.answerQuery(update)); m.RCode != dnsmessage.RCodeNotImplemented {
		t.Errorf("an update: %v", m.RCode)
	}
}

// A granted name that does not exist outside does not exist inside.
func TestANameThatDoesNotExist(t *testing.T) {
	var asked atomic.Int64
	w := &hostNetwork{resolver: saying(t, &asked, func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError })}
	s, _ := newSession(t, w, network.Limits{}, names443...)
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		if m := unpack(t, s.answerQuery(query(t, "a.test.", kind, false))); m.RCode != dnsmessage.RCodeNameError {
			t.Errorf("%v: %v", kind, m.RCode)
		}
	}
	if r := s.report(); len(r.Refused) != 1 || r.Refused[0] != (api.NetworkRefusal{Name: "a.test", Count: 1, Why: "looking the name up: no such host"}) {
		t.Errorf("%+v", r.Refused)
	}
	once := asked.Load()
	for i := range 50 { // labels carry nothing out
		s.answerQuery(query(t, fmt.Sprintf("secret%d.wild.test.", i), dnsmessage.TypeA, false))
		s.answerQuery(query(t, fmt.Sprintf("secret%d.a.test.", i), dnsmessage.TypeTXT, false))
		s.answerQuery(query(t, "a.test.", dnsmessage.TypeTXT, false))
	}
	if once == 0 || asked.Load() != once {
		t.Errorf("%d lookups, then %d", once, asked.Load())
	}
}

// Names of hosts are asked about, underscores in them or not; services of names are not.
func TestNamesThatAreAskedAbout(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{}, names443...)
	s.spec.Ask = true
	for name, want := range map[string]dnsmessage.RCode{
		"b.test.": dnsmessage.RCodeSuccess, "a_b.test.": dnsmessage.RCodeSuccess,
		"_https._tcp.b.test.": dnsmessage.RCodeNameError, "b.": dnsmessage.RCodeNameError, "a&b.test.": dnsmessage.RCodeNameError,
	} {
		if m := unpack(t, s.answerQuery(query(t, name, dnsmessage.TypeA, false))); m.RCode != want {
			t.Errorf("%s: %v, want %v", name, m.RCode, want)
		}
	}
}

// Names that a call makes below a wildcard are those of hosts: any others it could fill the
// record with, six bytes for one of its own.
func TestNamesBelowAWildcardAreOfHosts(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{}, names443...)
	for name, want := range map[string]dnsmessage.RCode{
		"a_b-c.1.wild.test.": dnsmessage.RCodeSuccess, "A.wild.test.": dnsmessage.RCodeSuccess, "<.wild.test.": dnsmessage.RCodeNameError,
		"a b.wild.test.": dnsmessage.RCodeNameError, "\x01.wild.test.": dnsmessage.RCodeNameError, "\xe2\x80\xb9.wild.test.": dnsmessage.RCodeNameError,
	} {
		if m := unpack(t, s.answerQuery(query(t, name, dnsmessage.TypeA, false))); m.RCode != want {
			t.Errorf("%q: %v, want %v", name, m.RCode, want)
		}
	}
}

func TestNamesBelowWildcardsAreBounded(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{}, names443...)
	for i := range network.MaxFound + 3 {
		m := unpack(t, s.answerQuery(query(t, fmt.Sprintf("n%d.wild.test.", i), dnsmessage.TypeA, false)))
		if want := map[bool]dnsmessage.RCode{false: dnsmessage.RCodeSuccess, true: dnsmessage.RCodeNameError}[i >= network.MaxFound]; m.RCode != want {
			t.Fatalf("name %d: %v", i, m.RCode)
		}
	}
	if r := s.report(); len(r.Refused) != 3 || !strings.Contains(r.Refused[0].Why, "more than 256 names") {
		t.Errorf("%+v", r.Refused)
	}
	if m := unpack(t, s.answerQuery(query(t, "n0.wild.test.", dnsmessage.TypeA, false))); m.RCode != dnsmessage.RCodeSuccess {
		t.Errorf("a name that has an address: %v", m.RCode)
	}
}

func TestNameServer(t *testing.T) {
	s, at := newSession(t, deaf(), network.Limits{}, names443...)
	s.leadTo("a.test", netip.MustParseAddr("203.0.113.1"))
	for _, kind := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, kind, at[kind])
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if got, err := r.LookupHost(ctx, "a.test."); err != nil || len(got) != 1 || got[0] != s.names.exact["a.test"].String() {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
	conn, err := net.Dial("tcp", at["tcp"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	one := query(t, "b.test.", dnsmessage.TypeA, true)
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(one))), one...)
	for range 3 { // one after another, and in pieces
		for _, b := range framed {
			if _, err := conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		if m := unpack(t, answer); m.RCode != dnsmessage.RCodeNameError {
			t.Error(m.RCode)
		}
	}
}

// Queries over the rate are lost.
func TestQueriesHaveARate(t *testing.T) {
	s, at := newSession(t, deaf(), network.Limits{}, names443...)
	conn, err := net.Dial("udp", at["udp"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began, one := time.Now(), query(t, "b.test.", dnsmessage.TypeA, false)
	for range 20 * network.QueriesPerSecond {
		_, _ = conn.Write(one)
	}
	for s.queries.Tokens() > 1 && time.Since(began) < 20*time.Second {
		_, _ = conn.Write(one)
	}
	counted := s.report().Refused[0].Count
	if most := network.QueriesPerSecond * (2 + time.Since(began).Seconds()); float64(counted) > most {
		t.Errorf("%d queries were looked at in %v", counted, time.Since(began))
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range [][]byte{
		query(f, "a.test.", dnsmessage.TypeA, true), query(f, "b.wild.test.", dnsmessage.TypeAAAA, false), query(f, "1.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, false),
		query(f, "x.", 65, true)[:20],
		{0, 1},
		append(query(f, "a.", dnsmessage.TypeA, false)[:12], 0xc0, 12, 0, 1, 0, 1),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := &session{
			spec: Session{Grants: names443, Limits: network.DefaultLimits()}, hostNetwork: deaf(), host: &told{}, ledger: newLedger(), asks: newAsks(), trafficCtx: t.Context(),
		}
		s.names = newNames(s.spec, s.hostNetwork)
		s.leadTo("a.test", netip.MustParseAddr("203.0.113.1"))
		answer := s.answerQuery(raw)
		if answer == nil {
			if len(raw) >= 12 && raw[2]&0x80 == 0 {
				t.Errorf("a query without an answer")
			}
			return
		}
		m := unpack(t, answer)
		if !m.Response || len(answer) > udpBytes || m.ID != binary.BigEndian.Uint16(raw) {
			t.Errorf("%d bytes, %+v", len(answer), m.Header)
		}
		for _, a := range m.Answers {
			name := strings.TrimSuffix(strings.ToLower(a.Header.Name.String()), ".")
			switch body := a.Body.(type) {
			case *dnsmessage.AResource:
				if addr := netip.AddrFrom4(body.A); !netip.MustParsePrefix("198.18.0.0/15").Contains(addr) || !network.Knows(names443, name) || s.names.of(addr) != name {
					t.Errorf("%q has %v", name, addr)
				}
			case *dnsmessage.PTRResource:
				if !network.Knows(names443, strings.TrimSuffix(body.PTR.String(), ".")) {
					t.Errorf("%q has %v", name, body.PTR)
				}
			default:
				t.Errorf("%T", body)
			}
		}
	})
}

// A name that is reached through a proxy on one of its ports has an address, whether this
// machine can look it up or not.
func TestNamesThatAProxyLooksUp(t *testing.T) {
	for _, test := range []struct {
		proxy httpproxy.Config
		port  uint16 // of the name
		wild  uint16 // of a wildcard
		code  dnsmessage.RCode
	}{
		{httpproxy.Config{HTTPProxy: "http://proxy.test:3128"}, 80, 443, dnsmessage.RCodeSuccess},
		{httpproxy.Config{HTTPProxy: "http://proxy.test:3128"}, 443, 80, dnsmessage.RCodeSuccess},
		{httpproxy.Config{HTTPProxy: "http://proxy.test:3128"}, 443, 443, dnsmessage.RCodeNameError},
		{httpproxy.Config{HTTPSProxy: "http://proxy.test:3128"}, 80, 80, dnsmessage.RCodeNameError},
		{httpproxy.Config{HTTPProxy: "http://proxy.test:3128", HTTPSProxy: "http://proxy.test:3128", NoProxy: "a.test:443"}, 80, 443, dnsmessage.RCodeSuccess},
	} {
		var asked atomic.Int64
		w := newHostNetwork(&test.proxy)
		w.resolver = saying(t, &asked, func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError })
		s, _ := newSession(t, w, network.Limits{}, network.Grant{Host: "a.test", Ports: []uint16{test.port}}, network.Grant{Host: "*.test", Ports: []uint16{test.wild}})
		if got := unpack(t, s.answerQuery(query(t, "a.test.", dnsmessage.TypeA, false))); got.RCode != test.code {
			t.Errorf("%+v: ports %d and %d: %s", test.proxy, test.port, test.wild, got.RCode)
		}
	}
}
