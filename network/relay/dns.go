package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toolhost/toolhost/network"
)

const (
	// maxQueries bounds those that are answered at once, maxStreams the TCP
	// connections to the name server.
	maxQueries = 64
	maxStreams = 16
	// existsTime is how long a query waits to learn that its name does not exist.
	existsTime = 2 * time.Second
	streamIdle = 10 * time.Second
	// ttl of answers, in seconds. They hold for as long as the call does.
	ttl = 60
	// queryBytes is what a query on UDP may have; the rest of a longer one is lost,
	// which makes it malformed.
	queryBytes = 4 << 10
	// udpBytes is what an answer may have on UDP; ours are far smaller.
	udpBytes = 1232
)

// serveDNS answers queries on UDP. Those beyond the rate, or too many at once, are
// lost, as UDP may lose them.
func (s *session) serveDNS(conn *net.UDPConn) {
	buf := make([]byte, queryBytes)
	slots := make(chan struct{}, maxQueries)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) || s.sessionCtx.Err() != nil {
			return
		}
		if err != nil {
			sleep(s.sessionCtx, again)
			continue
		}
		if !s.queries.Allow() {
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			continue
		}
		query := append([]byte(nil), buf[:n]...)
		s.workers.Go(func() {
			defer func() { <-slots }()
			if answer := s.answerQuery(query); answer != nil {
				_, _ = conn.WriteToUDPAddrPort(answer, from)
			}
		})
	}
}

// acceptDNS takes TCP connections to the name server.
func (s *session) acceptDNS(l *net.TCPListener) {
	slots := make(chan struct{}, maxStreams)
	for s.sessionCtx.Err() == nil {
		if s.accepts.Wait(s.sessionCtx) != nil {
			return
		}
		conn, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			sleep(s.sessionCtx, again)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			reset(conn)
			continue
		}
		s.workers.Go(func() {
			defer func() { <-slots }()
			s.streamDNS(conn)
		})
	}
}

// streamDNS answers queries on one TCP connection (RFC 7766), one after another.
func (s *session) streamDNS(conn *net.TCPConn) {
	defer reset(conn)
	stop := context.AfterFunc(s.sessionCtx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var size [2]byte
	for {
		_ = conn.SetDeadline(time.Now().Add(streamIdle))
		if _, err := io.ReadFull(conn, size[:]); err != nil || s.sessionCtx.Err() != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		if s.queries.Wait(s.sessionCtx) != nil {
			return
		}
		answer := s.answerQuery(query)
		if answer == nil {
			return
		}
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
		if _, err := conn.Write(framed); err != nil {
			return
		}
	}
}

// reply is what a query is answered with.
type reply struct {
	code dnsmessage.RCode
	a    netip.Addr // where a query for an address has one
	ptr  string     // or a name, of a query for that
}

// answerQuery is the whole answer, or nil where nothing is to be answered.
func (s *session) answerQuery(raw []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(raw)
	if err != nil {
		if len(raw) < 2 {
			return nil
		}
		return pack(dnsmessage.Header{ID: binary.BigEndian.Uint16(raw)}, nil, reply{code: dnsmessage.RCodeFormatError}, false)
	}
	if header.Response {
		return nil
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return pack(header, nil, reply{code: dnsmessage.RCodeFormatError}, false)
	}
	edns, err := hasEDNS(&p)
	if err != nil {
		return pack(header, &questions[0], reply{code: dnsmessage.RCodeFormatError}, false)
	}
	got := reply{code: dnsmessage.RCodeNotImplemented}
	if q := questions[0]; header.OpCode == 0 && (q.Class == dnsmessage.ClassINET || q.Class == dnsmessage.ClassANY) {
		got = s.lookUp(q)
	}
	return pack(header, &questions[0], got, edns)
}

// hasEDNS reads a query to its end.
func hasEDNS(p *dnsmessage.Parser) (edns bool, err error) {
	if err := p.SkipAllAnswers(); err != nil {
		return false, err
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return false, err
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return edns, nil
		}
		if err != nil {
			return false, err
		}
		edns = edns || h.Type == dnsmessage.TypeOPT
		if err := p.SkipAdditional(); err != nil {
			return false, err
		}
	}
}

func pack(header dnsmessage.Header, q *dnsmessage.Question, r reply, edns bool) []byte {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true, RCode: r.code,
	})
	b.EnableCompression()
	err := b.StartQuestions()
	if q != nil && err == nil {
		err = b.Question(*q)
	}
	if err == nil {
		err = b.StartAnswers()
	}
	if err == nil && q != nil {
		of := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}
		if r.a.IsValid() {
			err = b.AResource(of, dnsmessage.AResource{A: r.a.As4()})
		}
		if name, wrong := dnsmessage.NewName(r.ptr + "."); r.ptr != "" && wrong == nil {
			err = b.PTRResource(of, dnsmessage.PTRResource{PTR: name})
		}
	}
	if err == nil && edns {
		var of dnsmessage.ResourceHeader
		if err = b.StartAdditionals(); err == nil {
			err = of.SetEDNS0(udpBytes, 0, false)
		}
		if err == nil {
			err = b.OPTResource(of, dnsmessage.OPTResource{})
		}
	}
	answer, finished := b.Finish()
	if err != nil || finished != nil {
		return nil
	}
	return answer
}

// lookUp decides what a question is answered with.
func (s *session) lookUp(q dnsmessage.Question) reply {
	name := strings.TrimSuffix(lower(q.Name.String()), ".")
	if addr, ok := reversed(name); ok {
		if q.Type == dnsmessage.TypePTR && s.names.of(addr) != "" {
			return reply{ptr: s.names.of(addr)}
		}
		return reply{code: dnsmessage.RCodeNameError}
	}
	if addr, ok := s.names.exact[name]; ok {
		return s.lookUpExact(name, addr, q.Type)
	}
	if of := served(name); of != name && network.Knows(s.spec.Grants, of) {
		return reply{} // SRV, HTTPS and their like are optional
	}
	plain, err := network.Name(name)
	granted := network.Knows(s.spec.Grants, name) && ofHost(name)
	if !granted && (!s.spec.Ask || err != nil || plain != name || !strings.Contains(name, ".") || served(name) != name) {
		s.ledger.refuse(refusalKey{name: shown(name), why: "not granted"}, q.Type != dnsmessage.TypeA)
		return reply{code: dnsmessage.RCodeNameError}
	}
	if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
		return reply{} // there is no such record, as far as the call is told
	}
	addr, full := s.names.give(name)
	if full {
		s.ledger.refuse(refusalKey{name: shown(name), why: "more than " + strconv.Itoa(network.MaxFound) + " names below wildcards"}, false)
		return reply{code: dnsmessage.RCodeNameError}
	}
	return reply{a: addr}
}

// ofHost says whether a name has only what names of hosts have, underscores among it: below
// a wildcard a call makes its own, and DNS takes any byte.
func ofHost(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_')
	})
}

// served is the name without what says a service of it (RFC 2782): _https._tcp.
func served(name string) string {
	for strings.HasPrefix(name, "_") {
		_, name, _ = strings.Cut(name, ".")
	}
	return name
}

// lookUpExact looks the name up outside: one that does not exist has no address
// here either. Where that is not known in time, the connection will tell.
func (s *session) lookUpExact(name string, addr netip.Addr, kind dnsmessage.Type) reply {
	if s.proxied(name) { // and may be looked up by the proxy alone
		if kind == dnsmessage.TypeA || kind == dnsmessage.TypeALL {
			return reply{a: addr}
		}
		return reply{}
	}
	l := s.names.resolve(name)
	if kind == dnsmessage.TypeA || kind == dnsmessage.TypeALL {
		timer := time.NewTimer(existsTime)
		defer timer.Stop()
		select {
		case <-l.done:
		case <-timer.C:
		case <-s.trafficCtx.Done():
		}
	}
	select {
	case <-l.done:
		if l.missing() {
			s.ledger.refuse(refusalKey{name: name, why: dialError(l.err)}, kind != dnsmessage.TypeA)
			return reply{code: dnsmessage.RCodeNameError}
		}
	default:
	}
	if kind != dnsmessage.TypeA && kind != dnsmessage.TypeALL {
		return reply{}
	}
	return reply{a: addr}
}

// proxied says whether connections to a granted name go through a proxy, on any port that
// it or a wildcard is granted.
func (s *session) proxied(name string) bool {
	for _, g := range s.spec.Grants {
		if !g.Matches(name) {
			continue
		}
		for _, port := range g.Ports {
			by, err := s.hostNetwork.proxyFor(name, port, g.Inspect(port) == network.HTTPHost)
			if by != nil || err != nil {
				return true
			}
		}
	}
	return false
}

// reversed is the address that a name of in-addr.arpa is about; ok is true for
// all names of reverse lookups.
func reversed(name string) (addr netip.Addr, ok bool) {
	if strings.HasSuffix(name, ".ip6.arpa") {
		return netip.Addr{}, true
	}
	digits, ok := strings.CutSuffix(name, ".in-addr.arpa")
	if !ok {
		return netip.Addr{}, false
	}
	parts := strings.Split(digits, ".")
	slices.Reverse(parts)
	addr, _ = netip.ParseAddr(strings.Join(parts, "."))
	return addr, true
}
