package mcp

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/internal/fifo"
)

// hearing passes on what servers write to stderr while a call runs, all that was
// written before the call's answer before its result. What comes between two calls is
// nobody's: the next one may be another caller's.
type hearing struct {
	to io.Writer

	mu     sync.Mutex // held while a pipe is read and what it held is passed on
	calls  int        // that run, and Describes
	served bool       // a call has ended
	pipes  map[*tail]syscall.RawConn
	buf    []byte // nil until a server writes
}

func newHearing(to io.Writer) *hearing {
	return &hearing{to: to, pipes: map[*tail]syscall.RawConn{}}
}

// heard is true also before the first call: a server says why it does not start.
func (h *hearing) heard() bool { return h.calls > 0 || !h.served }

// Write is for the adapter's own notes.
func (h *hearing) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.heard() {
		return len(p), nil
	}
	return h.to.Write(p)
}

// begin is the beginning of a call or a Describe.
func (h *hearing) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.heard() {
		h.takeRest()
		for t := range h.pipes {
			t.forget()
		}
	}
	h.calls++
}

// end is the end of a Describe.
func (h *hearing) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takeRest()
	h.calls--
}

// endCall is the end of a call, before its result is sent.
func (h *hearing) endCall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takeRest()
	h.calls--
	h.served = true
}

// takeRest takes what the pipes hold, and no more: a server may write faster than it is
// read. The caller holds mu.
func (h *hearing) takeRest() {
	for t, pipe := range h.pipes {
		left, err := fifo.HeldRaw(pipe)
		for n := 0; err == nil && left > 0; left -= n {
			outer := pipe.Control(func(fd uintptr) { n, err = h.read(t, int(fd), left) })
			err = cmp.Or(outer, err)
		}
	}
}

// readBytes is how much is read at once.
const readBytes = 32 << 10

// read takes at most limit bytes, without waiting. The caller holds mu.
func (h *hearing) read(t *tail, fd, limit int) (n int, err error) {
	if h.buf == nil {
		h.buf = make([]byte, readBytes)
	}
	for {
		if n, err = syscall.Read(fd, h.buf[:min(limit, readBytes)]); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	case h.heard():
		t.keep(h.buf[:n])
		_, _ = h.to.Write(h.buf[:n])
	}
	return n, nil
}
