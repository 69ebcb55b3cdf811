package relay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/network"
)

// hostNetwork is what the relay uses outside of namespaces: the machine's resolver, its own addresses, and the
// outbound proxy.
type hostNetwork struct {
	resolver *net.Resolver
	proxy    func(*url.URL) (*url.URL, error) // nil without a proxy

	mu          sync.Mutex
	own         []netip.Addr
	ownAt       time.Time
	translation *lookup // the last of network.TranslationName; nil before
}

func newHostNetwork(proxy *httpproxy.Config) *hostNetwork {
	w := &hostNetwork{resolver: &net.Resolver{PreferGo: true, StrictErrors: true}}
	if proxy != nil && (proxy.HTTPProxy != "" || proxy.HTTPSProxy != "") {
		w.proxy = proxy.ProxyFunc()
	}
	return w
}

// ownEvery is how long the machine's addresses are taken to stay.
const ownEvery = 5 * time.Second

// reach is what a session's connections may lead to at this moment; v6 says that there are
// IPv6 addresses among what is tried.
func (w *hostNetwork) reach(ctx context.Context, spec Session, v6 bool) (network.Reach, error) {
	r, err := w.machine()
	r.Granted, r.Deny = spec.Grants, spec.Deny
	if err == nil && v6 {
		r.Translated, r.MayTranslate = w.prefixes(ctx)
	}
	return r, err
}

// machine is what is the machine's own.
func (w *hostNetwork) machine() (network.Reach, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.ownAt) > ownEvery {
		list, err := net.InterfaceAddrs()
		if err != nil {
			return network.Reach{}, fmt.Errorf("cannot list the host's own addresses, so that none can be told apart: %w", err)
		}
		w.own = w.own[:0:0]
		for _, a := range list {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				w.own = append(w.own, prefix.Addr())
			}
		}
		w.ownAt = time.Now()
	}
	return network.Reach{Own: w.own}, nil
}

// refusedError is an address that a name must not lead to.
type refusedError struct {
	at  netip.AddrPort
	why string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is %s", e.at.Addr().Unmap(), e.why)
}

// dialOne connects to one address, if it may be had. The check sees the very
// address that the kernel is given.
func dialOne(ctx context.Context, to netip.AddrPort, reach network.Reach) (*net.TCPConn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("bug: the address %q: %w", address, err)
		}
		if why := reach.Refuse(at); why != "" {
			return &refusedError{at, why}
		}
		return nil
	}}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// nextAfter is when the next address of a name is tried beside those before it
// (RFC 8305, section 5).
const nextAfter = 250 * time.Millisecond

type dialed struct {
	conn *net.TCPConn
	to   netip.AddrPort
	err  error
}

// dialAny connects to the first of a name's addresses that answers.
func dialAny(ctx context.Context, to []netip.AddrPort, reach network.Reach) (*net.TCPConn, netip.AddrPort, error) {
	if len(to) == 0 {
		return nil, netip.AddrPort{}, errors.New("the name has no addresses")
	}
	if len(to) == 1 { // with nothing to race it, it is made here
		conn, err := dialOne(ctx, to[0], reach)
		return conn, to[0], err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialed)
	start := func(at netip.AddrPort) {
		go func() {
			conn, err := dialOne(ctx, at, reach)
			select {
			case results <- dialed{conn, at, err}:
			case <-ctx.Done():
				if conn != nil {
					_ = conn.Close()
				}
			}
		}()
	}
	start(to[0])
	begun, over := 1, 0
	timer := time.NewTimer(nextAfter)
	defer timer.Stop()
	var first dialed
	next := func() {
		if begun < len(to) {
			start(to[begun])
			begun++
			timer.Reset(nextAfter)
		}
	}
	for {
		select {
		case got := <-results:
			if got.err == nil {
				return got.conn, got.to, nil
			}
			if over++; over == 1 {
				first = got
			}
			if over == len(to) {
				return nil, first.to, first.err
			}
			if over == begun {
				next()
			}
		case <-timer.C:
			next()
		case <-ctx.Done():
			return nil, to[0], context.Cause(ctx)
		}
	}
}

// proxyFor is the proxy for a name and port; nil for none.
func (w *hostNetwork) proxyFor(name string, port uint16, plain bool) (*url.URL, error) {
	if w.proxy == nil {
		return nil, nil
	}
	scheme := "https"
	if plain {
		scheme = "http"
	}
	return w.proxy(&url.URL{Scheme: scheme, Host: net.JoinHostPort(name, strconv.Itoa(int(port)))})
}

// dialProxy connects to the operator's own proxy, whose address is not judged.
func dialProxy(ctx context.Context, proxy *url.URL) (*net.TCPConn, error) {
	if proxy.Scheme != "http" {
		return nil, fmt.Errorf("the outbound proxy %s has the scheme %q: only http:// is spoken to a proxy", proxy.Host, proxy.Scheme)
	}
	port := cmp.Or(proxy.Port(), "80")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the outbound proxy: %w", err)
	}
	return conn.(*net.TCPConn), nil
}

// tunnel asks a proxy for a connection (RFC 9110, 9.3.6), and returns how many
// bytes that took.
func tunnel(ctx context.Context, conn *net.TCPConn, proxy *url.URL, name string, port uint16) (sent, received int64, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	target := net.JoinHostPort(name, strconv.Itoa(int(port)))
	var ask strings.Builder
	fmt.Fprintf(&ask, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target)
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		fmt.Fprintf(&ask, "Proxy-Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	ask.WriteString("\r\n")
	if _, err := conn.Write([]byte(ask.String())); err != nil {
		return 0, 0, fmt.Errorf("cannot ask the outbound proxy: %w", err)
	}
	// Byte by byte: what follows the answer is the destination's.
	counted := &oneByte{conn: conn}
	response, err := http.ReadResponse(bufio.NewReaderSize(counted, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the outbound proxy's answer: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return 0, 0, fmt.Errorf("the outbound proxy refuses %s: %s", target, response.Status)
	}
	return int64(ask.Len()), counted.n, nil
}

// maxAnswerBytes bounds a proxy's answer.
const maxAnswerBytes = 16 << 10

type oneByte struct {
	conn net.Conn
	n    int64
}

func (o *oneByte) Read(p []byte) (int, error) {
	if o.n >= maxAnswerBytes {
		return 0, errors.New("it is too long")
	}
	n, err := o.conn.Read(p[:min(len(p), 1)])
	o.n += int64(n)
	return n, err
}
