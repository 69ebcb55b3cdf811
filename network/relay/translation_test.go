package relay

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toolhost/toolhost/network"
)

// saying is a resolver whose server answers each query so, but for what is no response then.
func saying(t *testing.T, asked *atomic.Int64, answer func(*dnsmessage.Message)) *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		go func() {
			for {
				var size [2]byte
				if _, err := io.ReadFull(theirs, size[:]); err != nil {
					return
				}
				raw := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(theirs, raw); err != nil {
					return
				}
				var m dnsmessage.Message
				_ = m.Unpack(raw)
				asked.Add(1)
				m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
				if answer(&m); !m.Response {
					continue
				}
				raw, _ = m.Pack()
				_, _ = theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
			}
		}()
		return ours, nil
	}}
}

// A network may translate addresses until its resolver has said that it does not: a name
// leads to none meanwhile that could be translated to one that must not be reached.
func TestTranslationIsAskedFor(t *testing.T) {
	var asked atomic.Int64
	nowhere := func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError }
	for name, test := range map[string]struct {
		answer func(*dnsmessage.Message)
		why    string
	}{
		"no such name": {nowhere, ""},
		"no addresses": {func(*dnsmessage.Message) {}, ""},
		"failing":      {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure }, "perhaps translated to IPv4"},
		"refused":      {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeRefused }, "perhaps translated to IPv4"},
		"a prefix": {func(m *dnsmessage.Message) {
			q := m.Questions[0]
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
				Body:   &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("2a00:64::192.0.0.170").As16()},
			}}
		}, "translated to IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &hostNetwork{resolver: saying(t, &asked, test.answer)}
			spec := Session{Grants: []network.Grant{{Host: "2a00:64::a00:2", Ports: []uint16{443}}}}
			r, err := w.reach(t.Context(), spec, true)
			if err != nil {
				t.Fatal(err)
			}
			if why := r.Refuse(netip.MustParseAddrPort("[2a00:64::a00:1]:443")); test.why == "" && why != "" || !strings.HasPrefix(why, test.why) {
				t.Errorf("%q, want %q", why, test.why)
			}
			for _, fine := range []string{"93.184.216.34:443", "[2a00:64::a00:2]:443"} {
				if why := r.Refuse(netip.MustParseAddrPort(fine)); why != "" {
					t.Errorf("%s: %s", fine, why)
				}
			}
		})
	}

	w := &hostNetwork{resolver: saying(t, &asked, nowhere)}
	asked.Store(0)
	for range 10 {
		if _, may := w.prefixes(t.Context()); may {
			t.Error("the answer is not kept")
		}
	}
	once := asked.Load()
	w.translation.at = time.Time{} // it is old
	if _, may := w.prefixes(t.Context()); once == 0 || may || asked.Load() != 2*once {
		t.Errorf("%d queries, then %d", once, asked.Load())
	}
}

// What waits for the answer waits no longer than its own call.
func TestTranslationIsNotWaitedForTooLong(t *testing.T) {
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	w := &hostNetwork{resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		<-hangs
		return nil, io.EOF
	}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, may := w.prefixes(ctx); !may {
		t.Error("nothing is known, and it is taken for none")
	}
}

// IPv4 addresses do not wait until the time of their connection is over, be it short.
func TestTranslationDoesNotHoldUpIPv4(t *testing.T) {
	four, six := netip.MustParseAddrPort("93.184.216.34:443"), netip.MustParseAddrPort("[2a00:1::1]:443")
	for _, within := range []time.Duration{100 * time.Millisecond, network.DefaultDial} {
		synctest.Test(t, func(t *testing.T) {
			s := &session{hostNetwork: &hostNetwork{translation: &lookup{done: make(chan struct{})}}} // which never ends
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			r, err := s.reachOf(ctx, target{name: "a.test"}, []netip.AddrPort{six, four})
			if err != nil || ctx.Err() != nil || r.Refuse(four) != "" || r.Refuse(six) == "" {
				t.Errorf("%v, %v: %+v", err, ctx.Err(), r)
			}
			if _, err := s.reachOf(ctx, target{name: "a.test"}, []netip.AddrPort{six}); err != nil || ctx.Err() == nil {
				t.Errorf("IPv6 alone: %v, %v", err, ctx.Err())
			}
		})
	}
}
