package mcp

import (
	"syscall"

	"github.com/toolhost/toolhost/internal/fifo"
)

// A server that ends by itself may do so while a request is on its way. What of it is in the
// pipe still, with nobody left who could read it, was never asked, and may be made again.

// begins notes where a request begins in all that is sent; writing is locked.
func (w *wire) begins(e *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.begins = w.sent
}

// settle is countUnread where nobody has locked writing.
func (w *wire) settle() {
	if _, unheard := w.pipe(); unheard { // else a write may wait for who reads it
		w.writing.Lock()
		defer w.writing.Unlock()
		w.countUnread()
	}
}

// countUnread counts what a server that is gone has left in its pipe, which is what was sent
// last; writing is locked.
func (w *wire) countUnread() {
	pipe, unheard := w.pipe()
	if !unheard {
		return
	}
	held, err := fifo.Held(pipe)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone, w.heard = true, w.sent-int64(held)
}

// pipe is that to the server, and whether nobody can read it any more.
func (w *wire) pipe() (pipe syscall.RawConn, unheard bool) {
	pipe, err := w.process.stdin.SyscallConn()
	if err == nil {
		unheard, _ = fifo.Unheard(pipe)
	}
	return pipe, unheard
}

// unread says of a request that was sent whether certainly nobody has read any of it, or will.
func (w *wire) unread(e *exchange) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone && e.begins >= w.heard
}
