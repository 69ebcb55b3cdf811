package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/toolhost/toolhost/network"
)

// dial connects to the target, and has the attempt counted whatever comes of it.
// plain is for requests to a proxy in absolute form.
func (c *connection) dial(ctx context.Context, to target, plain bool) (*outer, error) {
	c.set(&c.waits, true)
	defer c.set(&c.waits, false)
	ctx, cancel := context.WithTimeout(ctx, c.session.spec.Limits.Dial)
	defer cancel()
	s := c.session
	key := flowKey{name: to.name, port: to.at.Port()}
	var conn *net.TCPConn
	var ownSent, ownReceived int64
	proxy, err := s.proxyOf(to, plain)
	if err == nil && proxy != nil {
		key.via = "proxy"
		conn, ownSent, ownReceived, err = dialThrough(ctx, proxy, to, plain)
	} else if err == nil {
		var at netip.AddrPort
		conn, at, err = s.dialDirect(ctx, to)
		key.address = addressOf(at)
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return nil, &policyRefusal{refusalKey{name: to.name, address: addressOf(refused.at), port: to.at.Port(), why: "the name leads to an address that is " + refused.why}}
	}
	if errors.Is(context.Cause(ctx), errLimit) && err != nil {
		err = errLimit
	}
	if err != nil {
		s.ledger.failed(key, c.begun, dialError(err))
		return nil, err
	}
	out, err := newOuter(conn, key, c.begun, s.ledger)
	if err != nil {
		reset(conn)
		return nil, err
	}
	out.ownSent, out.ownReceived = ownSent, ownReceived
	if most := s.received.most; most > 0 { // or the kernel would take many times that; it doubles what it is told
		_ = conn.SetReadBuffer(int(min(bufferBytes, most/2)))
	}
	return out, c.hold(out)
}

// dialError is what a flow says of a connection that was not made.
func dialError(err error) string {
	if errors.Is(err, context.Canceled) {
		return "given up before it was connected"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsTimeout {
			return "looking the name up timed out"
		}
		return "looking the name up: " + dns.Err
	}
	// The dialer's own deadline may pass before its context has ended.
	if timed, ok := errors.AsType[net.Error](err); ok && timed.Timeout() {
		return "connecting timed out"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}

func (s *session) proxyOf(to target, plain bool) (*url.URL, error) {
	if to.name == "" { // literal addresses never go there
		return nil, nil
	}
	return s.hostNetwork.proxyFor(to.name, to.at.Port(), plain)
}

func dialThrough(ctx context.Context, proxy *url.URL, to target, plain bool) (conn *net.TCPConn, sent, received int64, err error) {
	if conn, err = dialProxy(ctx, proxy); err != nil || plain {
		return conn, 0, 0, err
	}
	if sent, received, err = tunnel(ctx, conn, proxy, to.name, to.at.Port()); err != nil {
		reset(conn)
	}
	return conn, sent, received, err
}

func (s *session) dialDirect(ctx context.Context, to target) (*net.TCPConn, netip.AddrPort, error) {
	list := []netip.AddrPort{to.at}
	var err error
	if to.name != "" {
		if list, err = s.names.addresses(ctx, to.name, to.at.Port()); err != nil {
			return nil, netip.AddrPort{}, err
		}
	}
	reach, err := s.reachOf(ctx, to, list)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	return dialAny(ctx, list, reach)
}

// reachOf is what may be connected to of a target's addresses. What a resolver says about
// IPv6, which may be nothing, does not keep those of IPv4 waiting for the rest of the time.
func (s *session) reachOf(ctx context.Context, to target, list []netip.AddrPort) (network.Reach, error) {
	isV6 := func(at netip.AddrPort) bool { return at.Addr().Is6() && !at.Addr().Is4In6() }
	v6 := slices.ContainsFunc(list, isV6)
	if slices.ContainsFunc(list, func(at netip.AddrPort) bool { return !isV6(at) }) {
		most := otherFamily
		if until, ok := ctx.Deadline(); ok {
			most = min(most, time.Until(until)/2)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	return s.hostNetwork.reach(ctx, s.spec, to.name != "" && v6)
}
