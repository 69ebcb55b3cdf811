package rpc

import (
	"errors"
	"io"
	"time"
)

const (
	// maxWasteBytes of frames that carry no messages may come within wasteTime, which
	// is some 3,000 of them a second: no tool needs as many, and a host's CPU is still
	// as good as idle with them.
	maxWasteBytes = 256 << 10
	wasteTime     = 10 * time.Second
	// excusedOfMessage is what the frames around a message may have.
	excusedOfMessage = 64
	// excusedOfSent is what the peer may say for each frame of data that it gets:
	// an answer's headers and trailer, updates of both windows, a PING.
	excusedOfSent = 256
)

// waste is what a server sends beside its messages. Those are paced by who takes
// them, and nobody takes the rest: a frame costs a server a few bytes, and its
// client a round of the reader.
type waste struct {
	bytes int64
	since time.Time
}

// add says whether there is too much of it. The clock is looked at when there is
// much only.
func (w *waste) add(n int) (tooMuch bool) {
	if w.bytes += int64(n); w.bytes <= maxWasteBytes {
		return false
	}
	now := time.Now()
	tooMuch = now.Sub(w.since) < wasteTime
	w.bytes, w.since = 0, now
	return tooMuch
}

func (w *waste) excuse(n int) { w.bytes = max(0, w.bytes-int64(n)) }

// excuseData is for data that somebody waits for, and messages that it completes.
// In frames of 72 bytes and more their headers are excused with it.
func (w *waste) excuseData(bytes, messages int) {
	w.excuse(bytes + bytes/8 + messages*excusedOfMessage)
}

// input is what a connection reads. All of it is waste until it has proved to be
// something else, so that nothing of a frame's kind matters.
type input struct {
	c    *conn
	from io.Reader
}

func (r input) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if r.c.accept != nil { // a server has its host to read
		return n, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.err == nil && r.c.waste.add(n) {
		r.c.guilt = "it floods the connection with frames that carry no messages"
		r.c.fail(unavailable(errors.New("the peer floods it")))
	}
	return n, err
}
