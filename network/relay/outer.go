package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outer is a connection to a destination. Its bytes are counted by the kernel, so
// they are right whenever it ends.
type outer struct {
	*net.TCPConn
	raw    syscall.RawConn
	key    flowKey
	begun  time.Time
	ledger *ledger
	// Bytes that were exchanged with a proxy before the destination's.
	ownSent, ownReceived int64
	sawEnd               atomic.Bool            // of what the destination sends
	failed               atomic.Bool            // with an error that the kernel tells once
	broke                atomic.Pointer[string] // what broke it while it was read

	once sync.Once
	over atomic.Bool // it is finished
}

func newOuter(conn *net.TCPConn, key flowKey, begun time.Time, l *ledger) (*outer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	setBuffers(conn)
	o := &outer{TCPConn: conn, raw: raw, key: key, begun: begun, ledger: l}
	l.connected(o)
	return o, nil
}

// bufferBytes bounds what one connection holds in the kernel, each way.
const bufferBytes = 256 << 10

func setBuffers(conn *net.TCPConn) {
	_ = conn.SetReadBuffer(bufferBytes)
	_ = conn.SetWriteBuffer(bufferBytes)
}

// carried is what the connection has carried by now.
func (o *outer) carried() carried {
	var info *unix.TCPInfo
	err := o.raw.Control(func(fd uintptr) { info, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || info == nil {
		return carried{connections: 1}
	}
	received := int64(info.Bytes_received)
	switch info.State {
	case unix.BPF_TCP_CLOSE_WAIT, unix.BPF_TCP_LAST_ACK, unix.BPF_TCP_CLOSING, unix.BPF_TCP_TIME_WAIT:
		received-- // the FIN counts as one
	case unix.BPF_TCP_CLOSE: // after both have ended, or a reset
		if o.sawEnd.Load() || !o.wasReset() {
			received--
		}
	default:
		if o.sawEnd.Load() {
			received--
		}
	}
	sent := int64(info.Bytes_sent) - int64(info.Bytes_retrans)
	return carried{connections: 1, sent: max(sent-o.ownSent, 0), received: max(received-o.ownReceived, 0)}
}

func (o *outer) wasReset() bool {
	pending := false
	err := o.raw.Control(func(fd uintptr) { pending = raised(fd, 0)&unix.POLLERR != 0 })
	return err != nil || pending || o.failed.Load()
}

// unsent says whether there is something that the destination has not received.
func (o *outer) unsent() bool {
	n := 0
	err := o.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return err == nil && n > 0
}

// finish counts the connection and closes it; err is what broke it, or "".
func (o *outer) finish(err string, reset bool) {
	o.once.Do(func() {
		if reset {
			_ = o.SetLinger(0)
		}
		o.ledger.ended(o, err)
		_ = o.TCPConn.Close()
		o.over.Store(true)
	})
}

// why is what broke it while it was read, or "".
func (o *outer) why() string {
	if set := o.broke.Load(); set != nil {
		return *set
	}
	return ""
}

// Close is finish for what takes a net.Conn.
func (o *outer) Close() error {
	o.finish(o.why(), false)
	return nil
}

// plainCongestion has a listener's connections sent to at the pace at which they
// are read: they are of one machine, where others, as bbr, only add timers.
func plainCongestion(l *net.TCPListener) {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") })
	}
}

// reset closes a connection so that its other side knows that it was broken, and
// nothing of it is left in the kernel.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
