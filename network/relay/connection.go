package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/network"
)

// inspectTime is how long a tool may take to say which name it wants.
const inspectTime = 10 * time.Second

// connection is one that a tool has made.
type connection struct {
	session *session
	in      *net.TCPConn
	begun   time.Time
	isCut   atomic.Bool
	active  atomic.Int64 // when something last moved, in Unix nanoseconds

	mu      sync.Mutex
	out     []*outer // those that are over among them until the next is held
	aborted bool
	failed  bool   // one direction has
	broken  string // by the destination's fault, or a limit's, also where it was aborted
	sentAll bool   // all that the tool has sent was passed on
	waits   bool   // from the beginning, until a destination is dialled
}

// target is what a connection is meant for.
type target struct {
	name  string // empty for an address
	at    netip.AddrPort
	grant network.Grant
}

// inspection is what the connection must begin with.
func (t target) inspection() network.Inspection { return t.grant.Inspect(t.at.Port()) }

func (c *connection) local() netip.AddrPort {
	at := c.in.LocalAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// serve is the whole life of a connection.
func (c *connection) serve() {
	defer c.session.leave(c)
	c.active.Store(time.Now().UnixNano())
	to, err := c.target()
	if err == nil {
		err = c.connect(to)
	}
	var refused *policyRefusal
	if errors.As(err, &refused) {
		c.session.ledger.refuse(refused.key, false)
	}
	if err != nil {
		reset(c.in)
		return
	}
	_ = c.in.Close()
}

// policyRefusal is the error of a connection that the policy refuses.
type policyRefusal struct{ key refusalKey }

func (r *policyRefusal) Error() string { return r.key.why }

// refuse says why the connection is not let through.
func (c *connection) refuse(format string, args ...any) error {
	return &policyRefusal{c.session.refusalOf(c.local(), fmt.Sprintf(format, args...))}
}

// target finds what the address that the tool has connected to stands for.
func (c *connection) target() (target, error) {
	at, spec := c.local(), c.session.spec
	if grant, ok := network.FindAddr(spec.Grants, at); ok {
		return target{at: at, grant: grant}, nil
	}
	name := c.session.names.of(at.Addr())
	if name == "" {
		return target{}, c.refuse("not granted")
	}
	if grant, ok := network.Find(spec.Grants, name, at.Port()); ok {
		return target{name: name, at: at, grant: grant}, nil
	}
	if !spec.Ask {
		return target{}, c.refuse("not granted on this port")
	}
	ctx, stop := c.untilGivenUp()
	got := c.session.ask(ctx, c, name, at.Port())
	stop()
	if c.session.tripped.Load() != nil {
		return target{}, c.refuse("%v", errLimit)
	}
	if got.verdict != AllowOnce && got.verdict != AllowTurn {
		return target{}, c.refuse("%s", got.why)
	}
	return target{name: name, at: at, grant: network.Grant{Host: name, Ports: []uint16{at.Port()}}}, nil
}

// untilGivenUp ends with the session, or when the tool has closed the connection.
// What the tool has sent stays unread. stop is called before the connection is used.
func (c *connection) untilGivenUp() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(c.session.trafficCtx)
	raw, err := c.in.SyscallConn()
	if err != nil {
		return ctx, cancel
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if raw.Read(closedByTool) == nil { // woken by bytes and by the end alike
			cancel()
		}
	}()
	return ctx, func() {
		_ = c.in.SetReadDeadline(time.Unix(1, 0))
		<-watched
		_ = c.in.SetReadDeadline(time.Time{})
		cancel()
	}
}

// gaveUp says whether the tool has closed the connection.
func (c *connection) gaveUp() bool {
	closed := true
	raw, err := c.in.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { closed = closedByTool(fd) })
	}
	return closed
}

func closedByTool(fd uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	return err != nil || info.State != unix.BPF_TCP_ESTABLISHED
}

func (c *connection) set(flag *bool, v bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*flag = v
}

// connect inspects what the tool says, connects, and copies until both have ended.
func (c *connection) connect(to target) error {
	var head []byte
	switch to.inspection() {
	case network.HTTPHost:
		return c.serveHTTP(to)
	case network.TLSName:
		var err error
		if head, err = c.readHello(to); err != nil {
			return err
		}
	}
	out, err := c.dial(c.session.trafficCtx, to, false)
	if err != nil {
		return err
	}
	return c.copy(out, head)
}

// readHello reads what a connection of TLS begins with, which must be for the target.
func (c *connection) readHello(to target) ([]byte, error) {
	name, read, err := readHello(c.in, time.Now().Add(c.session.inspectTimeout))
	switch {
	case errors.Is(err, errUnsaid):
		return nil, err
	case err != nil:
		return nil, c.refuse("%v", err)
	case name != to.name:
		return nil, c.refuse("the TLS server name is %s", shown(name))
	}
	return read, nil
}

// shown is a name that a tool has sent, as a report can have it.
func shown(name string) string {
	if name == "" {
		return "missing"
	}
	const most = 80
	name = strings.Map(func(r rune) rune {
		if r < 0x21 || r > 0x7e {
			return '?'
		}
		return r
	}, name)
	if len(name) > most {
		name = name[:most] + "..."
	}
	return name
}

// hold keeps what the connection has outside, so that abort reaches it.
func (c *connection) hold(out *outer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		out.finish(c.broken, true)
		return net.ErrClosed
	}
	c.out = append(slices.DeleteFunc(slices.Clone(c.out), func(o *outer) bool { return o.over.Load() }), out)
	return nil
}

// copy passes bytes both ways until both directions have ended, or one has failed.
func (c *connection) copy(out *outer, head []byte) error {
	setBuffers(c.in)
	c.active.Store(time.Now().UnixNano())
	if len(head) > 0 {
		if err := c.session.sent.count(len(head)); err != nil {
			out.finish(err.Error(), true)
			return err
		}
		if _, err := out.Write(head); err != nil {
			out.finish(broken(err), true)
			return err
		}
	}
	idle, most := c.session.spec.Limits.Idle, largeBytes
	if c.session.bytes != nil {
		most = pipeBytes // a rate is not to come in bursts
	}
	down := make(chan error, 1)
	go func() {
		err := pump{out.TCPConn, c.in, &c.session.received, idle, most, &c.active, &c.isCut}.run()
		if err == nil {
			out.sawEnd.Store(true)
			err = c.in.CloseWrite()
		}
		c.fail(err, !isFrom(err), out)
		down <- err
	}()
	// Here goes what is there first, as a rule: the tool has not waited for the dial.
	err := pump{c.in, out.TCPConn, &c.session.sent, idle, most, &c.active, &c.isCut}.run()
	if err == nil {
		err = out.CloseWrite()
		c.set(&c.sentAll, true)
	}
	c.fail(err, isFrom(err), out)
	failed := errors.Join(err, <-down)
	c.mu.Lock()
	why, aborted := c.broken, c.aborted
	c.mu.Unlock()
	out.finish(why, aborted || failed != nil)
	return failed
}

func isFrom(err error) bool {
	_, ok := errors.AsType[fromError](err)
	return ok
}

// fail ends a connection whose one direction has failed; tool says that it was the
// tool's side, which may close when it likes.
func (c *connection) fail(err error, tool bool, out *outer) {
	if err == nil {
		return
	}
	c.mu.Lock()
	limited := errors.Is(err, errIdle) || errors.Is(err, errLimit)
	if !c.failed && !c.aborted && (!tool || limited) {
		c.broken = broken(err)
	}
	c.failed = true
	c.mu.Unlock()
	out.failed.Store(true)
	c.cut(out)
}

// broken is what a destination's error is called.
func broken(err error) string {
	if errors.Is(err, errIdle) || errors.Is(err, errLimit) {
		return err.Error()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return brokenOtherwise
}

const brokenOtherwise = "the connection broke"

// cut ends both directions at once, and wakes those that copy.
func (c *connection) cut(out *outer) {
	c.isCut.Store(true)
	past := time.Unix(1, 0)
	_ = c.in.SetDeadline(past)
	_ = out.SetDeadline(past)
}

// outers are the connections that it has outside.
func (c *connection) outers() []*outer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out
}

// abort ends the connection from outside; why is the limit's error, or "".
func (c *connection) abort(why string) {
	c.mu.Lock()
	c.aborted = true
	c.broken = cmp.Or(c.broken, why)
	c.mu.Unlock()
	for _, o := range c.outers() {
		o.finish(why, true)
	}
	reset(c.in)
}

// undelivered says whether something of the tool's may still be under way. The
// tool has ended.
func (c *connection) undelivered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits {
		return true
	}
	for _, o := range c.out {
		if !c.sentAll || o.unsent() {
			return true
		}
	}
	return false
}
