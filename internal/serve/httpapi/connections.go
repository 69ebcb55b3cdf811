package httpapi

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// leastConnections and mostConnections bound what is half of the files that this
	// process may open: the other half is for calls.
	leastConnections, mostConnections = 32, 16384
	// fullEvery is the time between two lines of the log that say that there are no more.
	fullEvery = time.Minute
)

// maxConnections is how many may be open at once (RLIMIT_NOFILE, getrlimit(2)).
func maxConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return leastConnections
	}
	return int(max(leastConnections, min(files.Cur/2, mostConnections)))
}

// connection is one of a client's.
type connection struct {
	list   *connections
	conn   net.Conn
	of     *origin
	known  bool // a request has authenticated
	in     *list.List
	at     *list.Element // in it
	closed atomic.Bool
}

// Closed says whether it has ended.
func (c *connection) Closed() bool { return c.closed.Load() }

// move puts it behind all others of a list.
func (c *connection) move(to *list.List) {
	if c.in != nil {
		c.in.Remove(c.at)
	}
	c.in, c.at = to, to.PushBack(c)
}

// origin is where connections come from: a user of this machine, or an address.
type origin struct {
	name    string
	all     int
	unknown list.List // those on which nobody has authenticated, the oldest first
	idle    list.List // the others that wait for a request
	busy    list.List // and those that have one
}

// connections are those that are open. When there are as many as may be, one is
// closed for each that comes, of the origin that has most.
type connections struct {
	most int
	log  hclog.Logger

	mu      sync.Mutex
	open    map[net.Conn]*connection
	origins map[string]*origin
	full    time.Time // when that was last said
}

func newConnections(most int, log hclog.Logger) *connections {
	return &connections{most: most, log: log, open: map[net.Conn]*connection{}, origins: map[string]*origin{}}
}

// add notes a new one.
func (l *connections) add(c net.Conn, from string) *connection {
	one := &connection{list: l, conn: c}
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.of = l.origins[from]; one.of == nil {
		one.of = &origin{name: from}
		l.origins[from] = one.of
	}
	one.of.all++
	one.move(&one.of.unknown)
	l.open[c] = one
	if len(l.open) > l.most {
		l.shut(l.victim(one))
	}
	return one
}

// victim is the one that makes room for another.
func (l *connections) victim(newest *connection) *connection {
	most := newest.of
	for _, o := range l.origins {
		if o.all > most.all {
			most = o
		}
	}
	for _, of := range []*list.List{&most.unknown, &most.idle} {
		if first := of.Front(); first != nil && first != newest.at {
			return first.Value.(*connection)
		}
	}
	if last := most.busy.Back(); last != nil && most != newest.of {
		return last.Value.(*connection)
	}
	return newest
}

// shut closes it, without waiting for its client.
func (l *connections) shut(c *connection) {
	l.drop(c)
	if secured, ok := c.conn.(*tls.Conn); ok {
		_ = secured.NetConn().Close()
	} else {
		_ = c.conn.Close()
	}
	if now := time.Now(); now.Sub(l.full) >= fullEvery {
		l.full = now
		l.log.Warn("too many connections are open: each new one costs one of those that have most, first where nobody has authenticated",
			"open", len(l.open), "most", c.of.name, "its", c.of.all, "remedy", "raise the limit of open files (LimitNOFILE): connections may have half of them")
	}
}

func (l *connections) drop(c *connection) {
	if l.open[c.conn] != c {
		return
	}
	delete(l.open, c.conn)
	c.in.Remove(c.at)
	if c.of.all--; c.of.all == 0 {
		delete(l.origins, c.of.name)
	}
	c.closed.Store(true)
}

// note is the hook for http.Server's ConnState.
func (l *connections) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.open[c]
	switch {
	case one == nil: // it is new, or shut
	case state == http.StateClosed || state == http.StateHijacked:
		l.drop(one)
	case one.known && state == http.StateIdle:
		one.move(&one.of.idle)
	case one.known && state == http.StateActive:
		one.move(&one.of.busy)
	}
}

// know is for a request that has authenticated.
func (l *connections) know(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.known && l.open[c.conn] == c {
		c.known = true
		c.move(&c.of.busy)
	}
}

// originName is where c comes from. Of IPv6 addresses who has one has 2^64.
func originName(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().Network()
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().String()
	}
	return address.String()
}

// knowConnection marks the request's.
func knowConnection(ctx context.Context) {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		one.list.know(one)
	}
}
