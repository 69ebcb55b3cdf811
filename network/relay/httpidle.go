package relay

import (
	"cmp"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// idleParts is how often in the idle time HTTP is looked at.
const idleParts = 8

// watch ends the connection when nothing has moved on any side of it for the idle time.
// What waits for a side then, to be read or to be written, has no deadline of its own. It
// comes after the server's IdleTimeout, which ends a connection between two requests.
func (h *httpRelay) watch() {
	part := max(h.session.spec.Limits.Idle/idleParts, time.Millisecond)
	tick := time.NewTicker(part)
	defer tick.Stop()
	for last, still := h.moved(), 0; ; {
		select {
		case <-h.ended:
			return
		case <-tick.C:
		}
		now := h.moved()
		if still++; now != last {
			last, still = now, 0
		}
		if still > idleParts {
			h.endIdle()
			return
		}
	}
}

// moved changes with every byte that one of the sides has taken or given.
func (h *httpRelay) moved() (n uint64) {
	n = passed(h.in)
	for _, o := range h.outers() {
		n += passed(o.TCPConn)
	}
	return n
}

// passed is what the other side of a connection has sent, and taken into its buffers.
func passed(conn *net.TCPConn) (n uint64) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_received + info.Bytes_acked
		}
	})
	return n
}

// endIdle ends all sides, which wakes what waits for them.
func (h *httpRelay) endIdle() {
	h.mu.Lock()
	h.err = cmp.Or(h.err, errIdle)
	h.mu.Unlock()
	for _, o := range h.outers() {
		o.finish(errIdle.Error(), true)
	}
	reset(h.in)
}
