package relay

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxHeaderBytes bounds the head of a request.
const maxHeaderBytes = 64 << 10

// serveHTTP passes the requests of one connection on, each after a look at the
// host that it is for.
func (c *connection) serveHTTP(to target) error {
	h := &httpRelay{connection: c, to: to}
	transport := &http.Transport{
		DialContext: h.dial, DisableCompression: true, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1,
		IdleConnTimeout: c.session.spec.Limits.Idle, MaxResponseHeaderBytes: maxHeaderBytes,
		Proxy: func(*http.Request) (*url.URL, error) { return c.session.proxyOf(to, true) },
	}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite: h.rewrite, Transport: transport, FlushInterval: -1, BufferPool: bodies{}, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { h.fail(err) },
	}
	in := &toolConn{TCPConn: c.in, relay: h}
	server := &http.Server{
		Handler: h.checked(in, proxy), ReadHeaderTimeout: c.session.inspectTimeout, IdleTimeout: c.session.spec.Limits.Idle,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return c.session.trafficCtx },
		ConnState:   in.follow,
	}
	listener := newOneConn(in)
	h.ended = in.ended
	_ = server.Serve(listener)
	h.requests.Wait()
	for _, o := range c.outers() {
		o.finish(o.why(), h.failure() != nil)
		c.session.ledger.broke(o, h.broken(o))
	}
	if in.refused != "" {
		return c.refuse("%s", in.refused)
	}
	if !h.begun.Load() && h.failure() == nil {
		return c.withoutRequest(in)
	}
	return h.failure()
}

// withoutRequest says what has come of a connection that had no request.
func (c *connection) withoutRequest(in *toolConn) error {
	if errors.Is(in.failed, os.ErrDeadlineExceeded) {
		return c.refuse(lateRequest)
	}
	if !in.said || errors.Is(in.failed, net.ErrClosed) {
		return errUnsaid
	}
	return c.refuse("it does not begin with a valid HTTP request")
}

// bodies are the buffers through which bodies pass.
type bodies struct{}

const bodyBytes = 256 << 10

var bodyPool = sync.Pool{New: func() any { return new([bodyBytes]byte) }}

func (bodies) Get() []byte  { return bodyPool.Get().(*[bodyBytes]byte)[:] }
func (bodies) Put(b []byte) { bodyPool.Put((*[bodyBytes]byte)(b)) }

// httpRelay is the part of a connection that speaks HTTP.
type httpRelay struct {
	*connection
	to       target
	begun    atomic.Bool   // a request has come
	dialled  atomic.Bool   // the first connection outside, which the tool's own counts for
	ended    chan struct{} // the server's part has
	requests sync.WaitGroup

	mu   sync.Mutex
	err  error // the first that ended it
	body error // of a request's
}

func (h *httpRelay) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// fail ends the connection, as one that is reset.
func (h *httpRelay) fail(err error) {
	h.mu.Lock()
	if h.err == nil && !errors.Is(err, context.Canceled) {
		h.err = err
	}
	h.mu.Unlock()
	_ = h.in.SetLinger(0)
	panic(http.ErrAbortHandler)
}

// checked refuses requests that are for another host, or that would turn the
// connection into something that cannot be looked into.
func (h *httpRelay) checked(in *toolConn, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		defer h.requests.Done()
		in.answers.Store(true)
		r.Body = &bodyWatch{r.Body, h}
		if !h.begun.Swap(true) {
			h.requests.Go(h.watch)
		}
		if why := h.wrong(r); why != "" {
			h.fail(h.connection.refuse("%s", why))
		}
		for _, name := range []string{"Content-Type", "Date"} { // which the server would add
			w.Header()[name] = nil
		}
		next.ServeHTTP(w, r)
	})
}

func (h *httpRelay) wrong(r *http.Request) string {
	switch {
	case r.Method == "PRI" || httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "h2c"):
		return "HTTP/2 without TLS is not passed on"
	case r.Method == http.MethodConnect:
		return "the HTTP method CONNECT is not passed on"
	case r.URL.IsAbs() && r.URL.Scheme != "http":
		return "the request is for a URL of another scheme"
	case r.URL.Opaque != "": // http:http://other/: which host it is for is not certain
		return "the request's target is neither a path nor a whole URL"
	case !h.meant(r.Host):
		return "the HTTP host is " + shown(r.Host)
	}
	return ""
}

// meant says whether a Host field names the target.
func (h *httpRelay) meant(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
	}
	name = strings.TrimSuffix(lower(name), ".")
	return name == h.to.name && (port == "" || port == strconv.Itoa(int(h.to.at.Port())))
}

// rewrite leaves a request as it came, as far as one connection's requests can be
// another's.
func (h *httpRelay) rewrite(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.URL.Opaque, out.Host = "http", h.authority(), "", r.In.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			out.Header[name] = values
		}
	}
	out.URL.RawQuery = r.In.URL.RawQuery
	if _, ok := r.In.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil
	}
}

func (h *httpRelay) authority() string {
	if h.to.at.Port() == 80 {
		return h.to.name
	}
	return net.JoinHostPort(h.to.name, strconv.Itoa(int(h.to.at.Port())))
}

// dial connects for the transport: to the target, or to the proxy that stands for
// it.
func (h *httpRelay) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if h.dialled.Swap(true) {
		if err := h.session.admitAnother(ctx, h.connection); err != nil {
			return nil, undialled{err}
		}
	}
	out, err := h.connection.dial(ctx, h.to, true)
	if err != nil {
		return nil, undialled{err}
	}
	return &countedOuter{outer: out, c: h.connection}, nil
}

// countedOuter counts what passes.
type countedOuter struct {
	*outer
	c *connection
}

func (o *countedOuter) Read(p []byte) (int, error) {
	received := &o.c.session.received
	n, err := o.outer.Read(p[:received.atOnce(len(p))])
	switch {
	case errors.Is(err, io.EOF):
		o.sawEnd.Store(true)
	case err != nil:
		o.failed.Store(true)
		if !errors.Is(err, net.ErrClosed) { // which it is by the tool
			o.broke.Store(new(broken(err)))
		}
	}
	if n > 0 {
		if wrong := received.count(n); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

func (o *countedOuter) Write(p []byte) (int, error) {
	n, sent := 0, &o.c.session.sent
	for n < len(p) {
		part := p[n:min(len(p), n+sent.atOnce(pipeBytes))]
		if err := sent.count(len(part)); err != nil {
			return n, err
		}
		m, err := o.outer.Write(part)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ReadFrom is not the TCP connection's, which would not count.
func (o *countedOuter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// WriteTo neither.
func (o *countedOuter) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{o})
}

// halfClosedTime is how long a tool that has ended its side is still answered. It
// may as well have gone.
const halfClosedTime = 10 * time.Second

// toolConn is the tool's connection, which its server closes; whether that is a reset
// is decided later.
type toolConn struct {
	*net.TCPConn
	relay *httpRelay
	once  sync.Once
	ended chan struct{}
	stop  chan struct{} // has a value when the server wants no more of Read

	said    bool        // something was read
	failed  error       // of the last Read
	answers atomic.Bool // a request that was read is being answered
	refused string      // why one was not read
}

// follow sees that an answer is over, at which the server has ended a Read.
func (c *toolConn) follow(_ net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		c.answers.Store(false)
		c.failed = nil
	}
}

// Write resets the connection where the server answers by itself: a tool would take that
// for the destination's answer.
func (c *toolConn) Write(p []byte) (int, error) {
	if !c.answers.Load() {
		c.refused = wrongRequest(p, !c.relay.begun.Load(), errors.Is(c.failed, os.ErrDeadlineExceeded))
		reset(c.TCPConn)
		return 0, net.ErrClosed
	}
	return c.TCPConn.Write(p)
}

// Close ends the server's part.
func (c *toolConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.TCPConn.Close()
}

// Read holds the end of what the tool sends back from the server, which would
// cancel the request that it answers: a server of net/http reads one byte meanwhile, to
// see that end.
func (c *toolConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.said, c.failed = c.said || n > 0, err
	if !errors.Is(err, io.EOF) || len(p) != 1 {
		return n, err
	}
	timer := time.NewTimer(halfClosedTime)
	defer timer.Stop()
	select {
	case <-c.stop:
		return 0, os.ErrDeadlineExceeded
	case <-c.ended:
	case <-c.relay.session.trafficCtx.Done():
	case <-timer.C:
	}
	return 0, err
}

// SetReadDeadline stops Read where the deadline has passed.
func (c *toolConn) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		select {
		case c.stop <- struct{}{}:
		default:
		}
	} else {
		select {
		case <-c.stop:
		default:
		}
	}
	return c.TCPConn.SetReadDeadline(at)
}

// oneConn is a listener of one connection, over when that is.
type oneConn struct {
	conn *toolConn
	took chan struct{}
}

func newOneConn(c *toolConn) *oneConn {
	c.ended, c.stop = make(chan struct{}), make(chan struct{}, 1)
	l := &oneConn{conn: c, took: make(chan struct{}, 1)}
	l.took <- struct{}{}
	return l
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case <-l.took:
		return l.conn, nil
	default:
	}
	<-l.conn.ended
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return net.TCPAddrFromAddrPort(netip.AddrPort{}) }
