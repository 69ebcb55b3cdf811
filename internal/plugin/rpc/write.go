package rpc

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// maxPendingBytes is how much waits for a write before senders wait, too.
	maxPendingBytes = 64 << 10
	// maxReplyBytes is how much more of replies may wait: a peer that has so many
	// of them sent to it reads nothing.
	maxReplyBytes = 64 << 10
	// maxFrameBytes is the length of a frame that every peer takes (RFC 9113, 4.2).
	maxFrameBytes = 16 << 10
)

// pending is what waits for a write; the Framer writes into it.
type pending struct {
	bytes  []byte
	broken bool // the peer takes nothing any more: the reader finds out why
}

func (p *pending) Write(b []byte) (int, error) {
	if !p.broken {
		p.bytes = append(p.bytes, b...)
	}
	return len(b), nil
}

func (p *pending) give(up bool) {
	p.broken = p.broken || up
	if p.bytes = p.bytes[:0]; cap(p.bytes) > maxFrameBytes {
		p.bytes = nil
	}
}

// attempt writes without waiting where the connection has a descriptor. write is
// [syscall.Write], or like it.
func attempt(nc net.Conn, write func(fd int, b []byte) (int, error)) func([]byte) (int, error) {
	with, ok := nc.(syscall.Conn)
	if !ok {
		return func([]byte) (int, error) { return 0, syscall.EAGAIN }
	}
	raw, err := with.SyscallConn()
	if err != nil {
		return func([]byte) (int, error) { return 0, err }
	}
	return func(b []byte) (n int, err error) {
		if rawErr := raw.Write(func(fd uintptr) bool {
			n, err = write(int(fd), b)
			return true
		}); rawErr != nil {
			return 0, rawErr
		}
		return max(n, 0), err
	}
}

// flush writes what is pending. It never waits: what the peer does not take at
// once is written by a goroutine. The connection's mutex is held.
func (c *conn) flush() {
	for !c.writing && len(c.out.bytes) > 0 {
		n, err := c.attempt(c.out.bytes)
		switch {
		case n == len(c.out.bytes):
			c.out.give(false)
		case err == nil || errors.Is(err, syscall.EINTR):
			c.out.bytes = c.out.bytes[n:]
		case errors.Is(err, syscall.EAGAIN):
			c.writing = true
			c.flushing.Go(c.drain)
		default:
			c.out.give(true)
		}
	}
	if c.err == nil && len(c.out.bytes) > maxPendingBytes+maxReplyBytes {
		c.guilt = "it does not read the replies that it has asked for, as to PING"
		c.fail(unavailable(errors.New("the peer does not read what it has asked for")))
	}
}

// drain writes all that is pending, and what is added meanwhile.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out.bytes) > 0 {
		out := c.out.bytes
		c.out.bytes = nil
		c.mu.Unlock()
		_, err := c.nc.Write(out)
		c.mu.Lock()
		if err != nil {
			c.out.give(true)
		}
		c.wakeAll()
	}
	c.writing = false
	c.endIfDone()
}

// fields writes a block of header fields, each of which fits one frame: see
// maxStatusBytes. The buffers that it is written to take all.
func (c *conn) fields(id uint32, end bool, fields ...hpack.HeaderField) {
	c.block.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(f)
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: end, EndHeaders: true})
}

func (c *conn) reset(id uint32, code http2.ErrCode) { _ = c.framer.WriteRSTStream(id, code) }
