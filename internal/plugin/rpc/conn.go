package rpc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/nowait"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
)

const (
	// windowBytes is what the other side may send on a stream, and on all of them,
	// before it is taken.
	windowBytes = 256 << 10
	// firstWindowBytes is the window of a connection before anything was said (RFC
	// 9113, 6.9.2).
	firstWindowBytes = 64<<10 - 1
	// maxWindowBytes is the largest (RFC 9113, 6.9.1).
	maxWindowBytes = 1<<31 - 1
	// maxHeaderBytes is that of a header list.
	maxHeaderBytes = 16 << 10
	// maxStreams is how many streams a server handles at once on a connection.
	maxStreams      = 1000
	readBufferBytes = 4 << 10
)

// Memory is where what has been received and is not yet taken is counted. Its
// methods may be called from any goroutine.
type Memory interface {
	// Take waits until there is room; an error ends the connection.
	Take(ctx context.Context, bytes int64) error
	Give(bytes int64)
}

type unbounded struct{}

func (unbounded) Take(context.Context, int64) error { return nil }

func (unbounded) Give(int64) {}

// Options of a Client or Server.
type Options struct {
	// MaxMessageBytes bounds a message that is received; zero is what one of a tool may have.
	MaxMessageBytes int
	// Received counts messages in memory; nil is without a bound for all of them.
	Received Memory
	// Brief is for a program that never computes for long, see package nowait.
	Brief bool
}

func (o *Options) complete() {
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, handshake.MaxMessageBytes)
	if o.Received == nil {
		o.Received = unbounded{}
	}
}

// conn is one side of a connection. It has a goroutine that reads, and one that
// writes only while the peer is slow to take what is written.
type conn struct {
	nc     net.Conn
	o      Options
	accept func(*http2.MetaHeadersFrame) error // a stream that the peer opens; nil on a client
	framer *http2.Framer
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	attempt  func([]byte) (int, error)
	flushing sync.WaitGroup
	handling sync.WaitGroup // of a server's streams
	reader   *bufio.Reader

	mu      sync.Mutex
	out     pending
	writing bool // by drain
	block   bytes.Buffer
	encoder *hpack.Encoder // writes to block

	streams map[uint32]*Stream
	vacated *sync.Cond // a stream has ended, or the peer takes more of them
	last    uint32     // the highest id of a stream that there was
	in      inWindow
	waste   waste
	window  int64 // what the peer takes on all streams
	peer    peerSettings
	heard   bool   // the peer has sent its settings
	greeted func() // called then, if it is not nil
	leaving bool   // no further streams
	running int    // streams that a server handles, or those that were reset and do not know it yet
	err     error  // why it has ended
	guilt   string // of the peer, for which this side has ended it
}

// peerSettings are what the other side has said of itself.
type peerSettings struct {
	window  int64 // of each stream
	streams uint32
}

func newConn(nc net.Conn, o Options) *conn {
	o.complete()
	from, write := io.Reader(nc), syscall.Write
	if o.Brief {
		from, write = nowait.NewReader(nc), nowait.Write
	}
	c := &conn{
		nc: nc, o: o, attempt: attempt(nc, write), streams: map[uint32]*Stream{}, window: firstWindowBytes, in: inWindow{left: windowBytes},
		peer: peerSettings{window: firstWindowBytes, streams: maxStreams},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.vacated = sync.NewCond(&c.mu)
	c.encoder = hpack.NewEncoder(&c.block)
	c.reader = bufio.NewReaderSize(input{c, from}, readBufferBytes)
	c.framer = http2.NewFramer(&c.out, c.reader)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrameBytes)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.MaxHeaderListSize = maxHeaderBytes
	return c
}

// greet writes the settings of this side.
func (c *conn) greet(more ...http2.Setting) {
	_ = c.framer.WriteSettings(append(more,
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowBytes}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaderBytes})...)
	_ = c.framer.WriteWindowUpdate(0, windowBytes-firstWindowBytes)
}

// run reads until the connection ends.
func (c *conn) run() {
	err := c.read()
	c.mu.Lock()
	if code, ok := errors.AsType[http2.ConnectionError](err); ok && c.err == nil {
		c.guilt = "it broke HTTP/2 (" + http2.ErrCode(code).String() + ")"
		_ = c.framer.WriteGoAway(c.last, http2.ErrCode(code), nil)
		c.flush()
	}
	c.fail(unavailable(err))
	c.mu.Unlock()
	c.flushing.Wait()
}

func (c *conn) read() error {
	if err := c.readPreface(); err != nil {
		return err
	}
	for {
		f, err := c.framer.ReadFrame()
		if broken, ok := errors.AsType[http2.StreamError](err); ok {
			err = c.broken(broken)
		} else if err == nil {
			err = c.take(f)
		}
		if errors.Is(err, http2.ErrFrameTooLarge) {
			err = http2.ConnectionError(http2.ErrCodeFrameSize)
		}
		if err != nil {
			return err
		}
	}
}

// readPreface takes that of a client (RFC 9113, 3.4).
func (c *conn) readPreface() error {
	if c.accept == nil {
		return nil
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.reader, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return protocolError
	}
	return nil
}

func unavailable(err error) error {
	return Errorf(codes.Unavailable, "the connection has ended: %v", err)
}

// fail ends the connection and all its streams. The mutex is held.
func (c *conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.out.give(true)
	c.cancel()
	_ = c.nc.Close()
	for _, s := range c.streams {
		s.finish(err)
	}
	c.vacated.Broadcast()
}

// Fail ends the connection; streams that have not ended yet end with err.
func (c *conn) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err)
}

func (c *conn) wakeAll() {
	for _, s := range c.streams {
		s.wake.Broadcast()
	}
	c.vacated.Broadcast()
}

// broken is a frame of a stream that is against the protocol.
func (c *conn) broken(e http2.StreamError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch id := e.StreamID; {
	case c.accept != nil && id%2 == 1 && id > c.last: // what it begins with is wrong
		c.last = id
	case c.isIdle(id):
		return http2.ConnectionError(e.Code)
	}
	c.abandon(c.streams[e.StreamID], e.StreamID, e.Code, Errorf(codes.Internal, "stream %d broke the protocol: %v", e.StreamID, cause(e)))
	return nil
}

func cause(e http2.StreamError) error {
	if e.Cause != nil {
		return e.Cause
	}
	return fmt.Errorf("%v", e.Code)
}

// abandon ends a stream on both sides. The mutex is held.
func (c *conn) abandon(s *Stream, id uint32, code http2.ErrCode, err error) {
	c.reset(id, code)
	if s != nil {
		s.finish(err)
	}
	c.flush()
}

// isIdle: there has not been such a stream. Clients open the odd ones, and
// servers none.
func (c *conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.last }
