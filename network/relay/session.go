package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
)

// hostEvents is how a session tells its host what happens.
type hostEvents interface {
	asked(Ask)
	left(Ask)
	passed(session, limit string)
}

// session serves one network namespace.
type session struct {
	spec        Session
	hostNetwork *hostNetwork
	host        hostEvents
	ledger      *ledger
	names       *names
	asks        *asks

	counters      counters
	sessionCtx    context.Context // ends with the session
	end           context.CancelFunc
	trafficCtx    context.Context // ends with the session, or at a limit: nothing more is begun or passed on
	stopTraffic   context.CancelCauseFunc
	acceptCtx     context.Context // ends when accepts no longer wait for connections
	stopAccepting context.CancelFunc
	acceptors     sync.WaitGroup
	workers       sync.WaitGroup // of the name server and of connections
	closers       []func() error
	listeners     []*net.TCPListener // of grants

	accepts, queries *rate.Limiter
	bytes            *rate.Limiter // nil without a rate
	sent, received   gauge
	total            atomic.Int64
	tripped          atomic.Pointer[string] // the first limit that was passed
	unreachable      int64                  // when it was closed
	inspectTimeout   time.Duration          // how long a connection may take to say what it is for

	mu    sync.Mutex
	over  bool
	conns map[*connection]struct{}
}

// openSession begins to serve files, which are the session's from here on.
func openSession(spec Session, files []*os.File, w *hostNetwork, host hostEvents) (*session, error) {
	spec.Limits = spec.Limits.Over(network.DefaultLimits())
	s := &session{
		spec: spec, hostNetwork: w, host: host, ledger: newLedger(), names: newNames(spec, w), asks: newAsks(),
		counters: counters{files[0], files[1]}, conns: map[*connection]struct{}{},
		accepts:        rate.NewLimiter(network.AcceptsPerSecond, network.AcceptsPerSecond),
		queries:        rate.NewLimiter(network.QueriesPerSecond, network.QueriesPerSecond),
		inspectTimeout: inspectTime,
	}
	if r := spec.Limits.Rate; r > 0 {
		s.bytes = newBytes(r)
	}
	s.sent = gauge{session: s, limit: "sent", most: spec.Limits.SentBytes}
	s.received = gauge{session: s, limit: "received", most: spec.Limits.ReceivedBytes}
	s.sessionCtx, s.end = context.WithCancel(context.Background())
	s.trafficCtx, s.stopTraffic = context.WithCancelCause(s.sessionCtx)
	s.acceptCtx, s.stopAccepting = context.WithCancel(s.sessionCtx)
	s.closers = []func() error{files[0].Close, files[1].Close}
	if err := s.listen(files[2:]); err != nil {
		closeAll(files[2:])
		s.close(false)
		return nil, err
	}
	return s, nil
}

// listen takes the sockets: the name server's, UDP and TCP, and those of grants.
func (s *session) listen(files []*os.File) error {
	packets, err := net.FilePacketConn(files[0])
	if err != nil {
		return fmt.Errorf("cannot use the socket of the call's name server: %w", err)
	}
	s.closers = append(s.closers, packets.Close)
	udp, ok := packets.(*net.UDPConn)
	if !ok {
		return errors.New("the socket of the call's name server is not a UDP socket")
	}
	var listeners []*net.TCPListener
	for _, file := range files[1:] {
		l, err := net.FileListener(file)
		if err != nil {
			return fmt.Errorf("cannot use a socket of the call's: %w", err)
		}
		s.closers = append(s.closers, l.Close)
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return errors.New("a socket of the call's does not listen on TCP")
		}
		plainCongestion(tcp)
		listeners = append(listeners, tcp)
	}
	closeAll(files)
	s.workers.Go(func() { s.serveDNS(udp) })
	s.workers.Go(func() { s.acceptDNS(listeners[0]) })
	s.listeners = listeners[1:]
	for _, l := range s.listeners {
		s.acceptors.Go(func() { s.accept(l) })
	}
	return nil
}

// again is how long an accept waits after an error that may pass: no descriptors.
const again = 50 * time.Millisecond

// accept takes connections, until their rest is taken. Those over the rate wait in the
// kernel.
func (s *session) accept(l *net.TCPListener) {
	for s.accepts.Wait(s.acceptCtx) == nil {
		if err := s.take(l); err != nil {
			sleep(s.acceptCtx, again)
		}
	}
}

func (s *session) take(l *net.TCPListener) error {
	conn, err := l.AcceptTCP()
	if err != nil {
		return err
	}
	c := &connection{session: s, in: conn, begun: time.Now(), waits: true}
	if s.admit(c) {
		s.workers.Go(c.serve)
	}
	return nil
}

// countOne counts a connection, and says whether it is beyond the limit of all.
func (s *session) countOne() (beyond bool) {
	most := s.spec.Limits.TotalConnections
	return s.total.Add(1) > most && most > 0
}

const connectionsTotal = "connectionsTotal"

// admitAnother lets a connection of the tool's have one more to its destination, which waits
// and counts as if the tool had made it.
func (s *session) admitAnother(ctx context.Context, c *connection) error {
	if err := s.accepts.Wait(ctx); err != nil {
		return err
	}
	beyond := s.countOne()
	if !beyond && s.tripped.Load() == nil {
		return nil
	}
	s.refuseAt(c.local(), errLimit.Error()) // first, for with the limit ends who waits for this
	if beyond {
		s.trip(connectionsTotal)
	}
	return errLimit
}

// admit takes a connection in, unless there are too many.
func (s *session) admit(c *connection) bool {
	if s.countOne() {
		s.trip(connectionsTotal)
	}
	why, ok := s.enter(c)
	if ok {
		return true
	}
	if why != "" {
		s.refuseAt(c.local(), why)
	}
	reset(c.in)
	return false
}

// enter says why a connection is not taken in; it needs no reason when the session ends.
func (s *session) enter(c *connection) (why string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return "", false
	case s.tripped.Load() != nil:
		return errLimit.Error(), false
	case int64(len(s.conns)) >= s.spec.Limits.Connections:
		return fmt.Sprintf("more than %d connections at once", s.spec.Limits.Connections), false
	}
	s.conns[c] = struct{}{}
	return "", true
}

func (s *session) leave(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// refuseAt counts the refusal of a connection to a synthetic or a granted address.
func (s *session) refuseAt(at netip.AddrPort, why string) {
	s.ledger.refuse(s.refusalOf(at, why), false)
}

// refusalOf names what is refused as the tool does, where it has a name.
func (s *session) refusalOf(at netip.AddrPort, why string) refusalKey {
	key := refusalKey{name: s.names.of(at.Addr()), port: at.Port(), why: why}
	if key.name == "" {
		key.address = at.Addr().String()
	}
	return key
}

// drainTime bounds how long the end of a session waits for what has been sent;
// drainEvery is how often it looks.
const (
	drainTime  = 250 * time.Millisecond
	drainEvery = time.Millisecond
)

// close ends the session, and returns when nothing of it is left.
func (s *session) close(drain bool) {
	if until := time.Now().Add(drainTime); drain {
		s.takeRest(until)
		for s.undelivered() && time.Now().Before(until) {
			time.Sleep(drainEvery)
		}
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.unreachable = s.counters.unreachable()
	s.end()
	for _, end := range s.closers {
		_ = end()
	}
	s.mu.Lock()
	for c := range s.conns {
		c.abort("")
	}
	s.mu.Unlock()
	s.acceptors.Wait()
	s.workers.Wait()
}

// takeRest takes the connections that wait to be accepted: a tool that connects, writes
// and ends may be gone by now.
func (s *session) takeRest(until time.Time) {
	s.stopAccepting()
	for _, l := range s.listeners {
		_ = l.SetDeadline(time.Unix(1, 0))
	}
	s.acceptors.Wait()
	for _, l := range s.listeners {
		_ = l.SetDeadline(until)
		for hasPending(l) && s.take(l) == nil && time.Now().Before(until) {
		}
	}
}

// hasPending says whether a connection waits to be accepted.
func hasPending(l *net.TCPListener) (pending bool) {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { pending = raised(fd, unix.POLLIN)&unix.POLLIN != 0 })
	}
	return pending
}

// raised are a socket's events now, of these and of those that are never asked for
// (poll(2)).
func raised(fd uintptr, events int16) int16 {
	list := []unix.PollFd{{Fd: int32(fd), Events: events}}
	if n, _ := unix.Poll(list, 0); n <= 0 {
		return 0
	}
	return list[0].Revents
}

// undelivered says whether something that the tool sent is still under way.
func (s *session) undelivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.undelivered() {
			return true
		}
	}
	return false
}

// begin counts for a call that comes to a kept process. One that is alone there has the
// limits to itself; those that are there at once have them together.
func (s *session) begin(call string, alone bool) {
	if alone {
		s.sent.sum.Store(0)
		s.received.sum.Store(0)
		s.total.Store(0)
	}
	s.ledger.begin(call, s.refusedInside())
}

// report is what there is so far, or what there was.
func (s *session) report() *api.Network { return s.limited(s.ledger.report(s.refusedInside())) }

// reportOf is what has come since a call began, which counts no longer; without one it
// is what there is so far.
func (s *session) reportOf(call string) *api.Network {
	if call == "" {
		return s.report()
	}
	return s.limited(s.ledger.end(call, s.refusedInside()))
}

// refusedInside is how often the kernel has refused in the namespace, or had when the
// session was closed.
func (s *session) refusedInside() int64 {
	if s.sessionCtx.Err() != nil {
		return s.unreachable
	}
	return s.counters.unreachable()
}
