package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/network"
)

// mute is a resolver that gets no answers.
func mute(t *testing.T) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}}
}

// What does not answer ends with the time for it, and the flow says which part did not.
func TestConnectingTakesTooLong(t *testing.T) {
	at := lab.Silent(t, "127.0.0.1")
	for name, test := range map[string]struct {
		hostNetwork *hostNetwork
		leads       []netip.Addr
		want        string
	}{
		"an address":  {deaf(), []netip.Addr{at.Addr()}, "connecting timed out"},
		"addresses":   {deaf(), []netip.Addr{at.Addr(), at.Addr()}, "connecting timed out"},
		"name server": {&hostNetwork{resolver: mute(t)}, nil, "looking the name up timed out"},
	} {
		s, _ := newSession(t, test.hostNetwork, network.Limits{Dial: 100 * time.Millisecond}, granted("a.test", at)...)
		if test.leads != nil {
			s.leadTo("a.test", test.leads...)
		}
		c, _ := connected(t, s)
		if _, err := c.dial(s.trafficCtx, target{name: "a.test", at: at, grant: s.spec.Grants[0]}, false); err == nil {
			t.Errorf("%s: connected", name)
		}
		if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != test.want || r.Flows[0].Connections != 1 {
			t.Errorf("%s: %+v, want %q", name, r.Flows, test.want)
		}
	}
}

// What is given up before it was connected says so, and not that it failed.
func TestConnectingIsGivenUp(t *testing.T) {
	at := lab.Silent(t, "127.0.0.1")
	for name, test := range map[string]struct {
		hostNetwork *hostNetwork
		leads       []netip.Addr
	}{
		"an address":  {deaf(), []netip.Addr{at.Addr()}},
		"name server": {&hostNetwork{resolver: mute(t)}, nil},
	} {
		s, _ := newSession(t, test.hostNetwork, network.Limits{Dial: time.Minute}, granted("a.test", at)...)
		if test.leads != nil {
			s.leadTo("a.test", test.leads...)
		}
		c, _ := connected(t, s)
		ctx, giveUp := context.WithCancel(s.trafficCtx)
		time.AfterFunc(time.Millisecond, giveUp)
		if _, err := c.dial(ctx, target{name: "a.test", at: at, grant: s.spec.Grants[0]}, false); err == nil {
			t.Errorf("%s: connected", name)
		}
		if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != "given up before it was connected" {
			t.Errorf("%s: %+v", name, r.Flows)
		}
	}
}

// A server that fails for one family of addresses, or says nothing, leaves those of the other.
func TestAFamilyThatCannotBeLookedUp(t *testing.T) {
	a, aaaa := &dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}}, &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("2606::1").As16()}
	mapped := &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	fails := func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure }
	silent := func(m *dnsmessage.Message) { m.Response = false }
	nowhere := func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError }
	empty := func(*dnsmessage.Message) {}
	for name, test := range map[string]struct {
		four, six dnsmessage.ResourceBody
		other     func(*dnsmessage.Message)
		want      string
		missing   bool
	}{
		"IPv4 alone, failing":    {a, nil, fails, "[93.184.216.34:443]", false},
		"IPv4 alone, silent":     {a, nil, silent, "[93.184.216.34:443]", false},
		"IPv4 alone":             {a, nil, empty, "[93.184.216.34:443]", false},
		"IPv6 alone, failing":    {nil, aaaa, fails, "[[2606::1]:443]", false},
		"IPv4 in IPv6":           {nil, mapped, nowhere, "[127.0.0.1:443]", false},
		"both":                   {a, aaaa, fails, "[[2606::1]:443 93.184.216.34:443]", false},
		"neither, failing":       {nil, nil, fails, "[]", false},
		"neither, no such names": {nil, nil, nowhere, "[]", true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			n := newNames(Session{Limits: network.Limits{Dial: time.Minute}}, &hostNetwork{resolver: saying(t, &asked, func(m *dnsmessage.Message) {
				q := m.Questions[0]
				body := map[dnsmessage.Type]dnsmessage.ResourceBody{dnsmessage.TypeA: test.four, dnsmessage.TypeAAAA: test.six}[q.Type]
				if body == nil {
					test.other(m)
					return
				}
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}, Body: body}}
			})})
			list, err := n.addresses(t.Context(), "a.test", 443)
			if got := fmt.Sprint(list); got != test.want || (err == nil) != (test.want != "[]") || n.resolve("a.test").missing() != test.missing {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
