package rpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/text"
)

// Stream is one call. Receive and Send may be called at the same time, but each
// from one goroutine only.
type Stream struct {
	c      *conn
	id     uint32
	method string
	limit  int                // of a message that is received
	ctx    context.Context    // of a server's stream, or a client's caller
	cancel context.CancelFunc // on a server; on a client it ends watching its caller's context

	// part is the reader's alone.
	part assembly

	// The connection's mutex guards these.
	wake     *sync.Cond
	in       inWindow
	window   int64 // what the peer takes
	ready    [][]byte
	withheld int64 // received, and not to be given back before ready is taken
	held     int64 // of Options.Received
	headed   bool  // a client has got its response headers, or a server has sent them
	ended    bool  // the peer has ended its side
	closed   bool  // this side has
	err      error // of the stream's end, io.EOF for a good one
}

func (c *conn) newStream(id uint32, method string) *Stream {
	s := &Stream{
		c: c, id: id, method: method, limit: c.o.MaxMessageBytes, wake: sync.NewCond(&c.mu), in: inWindow{left: windowBytes}, window: c.peer.window,
	}
	c.last = id
	c.streams[id] = s
	return s
}

// Context ends with a server's stream, and at its client's deadline.
func (s *Stream) Context() context.Context { return s.ctx }

// expire ends a client's stream whose context has ended, though its watch has not
// come to that yet. The mutex is held.
func (s *Stream) expire() {
	if s.c.accept == nil && s.err == nil && s.ctx.Err() != nil {
		s.c.abandon(s, s.id, http2.ErrCodeCancel, StatusOf(s.ctx.Err()))
	}
}

// isOver: the time for the stream is over.
func (s *Stream) isOver() bool {
	deadline, ok := s.ctx.Deadline()
	return ok && !deadline.After(time.Now())
}

// Method is what the client calls, as /package.Service/Method.
func (s *Stream) Method() string { return s.method }

// Receive waits for the next message and has take look at it, which must not
// keep it. It returns io.EOF after the last one, and otherwise take's error or an
// *Error of the stream, or the connection's.
func (s *Stream) Receive(take func(message []byte) error) error {
	message, err := s.next()
	if err != nil {
		return err
	}
	defer s.giveBack(int64(len(message)) + prefixBytes + messageCost)
	return take(message)
}

func (s *Stream) next() ([]byte, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for len(s.ready) == 0 {
		s.expire()
		switch {
		case s.err != nil:
			return nil, s.err
		case s.ended:
			return nil, io.EOF
		}
		s.c.flush() // a request may wait for its first message
		s.wake.Wait()
	}
	message := s.ready[0]
	if s.ready = s.ready[1:]; len(s.ready) == 0 {
		s.ready = nil
		s.credit(s.withheld)
	} else {
		s.credit(min(s.withheld, int64(len(message))+prefixBytes))
	}
	s.c.flush()
	return message, nil
}

// credit gives back so much of the window.
func (s *Stream) credit(n int64) {
	s.withheld -= n
	if grant := s.in.credit(n); grant > 0 && !s.ended && s.err == nil {
		_ = s.c.framer.WriteWindowUpdate(s.id, grant)
	}
}

func (s *Stream) giveBack(cost int64) {
	s.c.mu.Lock()
	cost = min(cost, s.held)
	s.held -= cost
	s.c.mu.Unlock()
	s.c.o.Received.Give(cost)
}

// takeData is for the reader, which has taken cost for it. A message that
// has begun is let in whole, however long: what is before it was taken.
func (s *Stream) takeData(f *http2.DataFrame, cost int64) {
	s.held += cost
	s.withheld += int64(f.Length)
	if s.err != nil { // nobody waits for it
		s.letGo()
		return
	}
	waiting := len(s.ready)
	if err := s.assemble(f.Data()); err != nil {
		s.c.abandon(s, s.id, http2.ErrCodeCancel, err)
		return
	}
	s.c.waste.excuseData(len(f.Data()), len(s.ready)-waiting)
	if f.StreamEnded() {
		s.end(s.endOfData())
	}
	if len(s.ready) == 0 {
		s.credit(s.withheld)
	}
	s.wake.Broadcast()
}

func (s *Stream) assemble(data []byte) error {
	if s.c.accept == nil && !s.headed {
		return Errorf(codes.Internal, "data before the response's headers")
	}
	for len(data) > 0 {
		rest, whole, err := s.part.add(data, s.limit)
		if err != nil {
			return err
		}
		if whole != nil {
			s.ready = append(s.ready, whole)
		}
		data = rest
	}
	return nil
}

// endOfData is what the end of the peer's side without a trailer means.
func (s *Stream) endOfData() error {
	if s.c.accept == nil {
		return Errorf(codes.Internal, "the server has ended the stream without a trailer")
	}
	return io.EOF
}

// end is the end of the peer's side. It is that of a client's stream, too.
func (s *Stream) end(why error) {
	s.ended = true
	if errors.Is(why, io.EOF) && !s.part.empty() {
		why = Errorf(codes.Internal, "the stream has ended within a message")
	}
	if s.c.accept != nil && errors.Is(why, io.EOF) {
		s.wake.Broadcast()
		return
	}
	if !s.closed {
		s.c.reset(s.id, http2.ErrCodeNo)
	}
	s.finish(why)
}

func (s *Stream) takeHeaders(f *http2.MetaHeadersFrame) {
	defer s.wake.Broadcast()
	switch {
	case s.c.accept != nil && f.StreamEnded(): // a client's trailer, which says nothing
		s.end(io.EOF)
	case s.c.accept != nil:
		s.c.abandon(s, s.id, http2.ErrCodeProtocol, Errorf(codes.Internal, "a second header list without the stream's end"))
	case s.headed && f.StreamEnded():
		s.end(readTrailer(f))
	case s.headed:
		s.c.abandon(s, s.id, http2.ErrCodeProtocol, Errorf(codes.Internal, "a second header list without the stream's end"))
	case strings.HasPrefix(f.PseudoValue("status"), "1") && !f.StreamEnded():
		// An interim response says nothing.
	default:
		s.takeResponse(f)
	}
}

// takeResponse takes a response's headers, which are its trailer as well if it
// has nothing else.
func (s *Stream) takeResponse(f *http2.MetaHeadersFrame) {
	s.headed = true
	code, kind := f.PseudoValue("status"), field(f, contentType)
	switch {
	case code != "200" || !isGRPC(kind):
		err := Errorf(codeOfHTTP(code), "unexpected HTTP response: status %s, content type %q", text.Bytes(code, 32), text.Bytes(kind, 64))
		if f.StreamEnded() {
			s.end(err)
		} else {
			s.c.abandon(s, s.id, http2.ErrCodeCancel, err)
		}
	case f.StreamEnded():
		s.end(readTrailer(f))
	}
}

const contentType = "content-type"

func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(kind, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

func field(f *http2.MetaHeadersFrame, name string) string {
	for _, field := range f.RegularFields() {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// Send hands a message to the connection, for which it waits until the peer takes
// it. After the last one a client sends nothing more, and a server its status,
// which goes along with it.
func (s *Stream) Send(m proto.Message, last bool) error {
	wire, err := encode(m)
	if err != nil {
		return err
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.write(wire, last); err != nil {
		return err
	}
	s.closed = last
	if !last || s.c.accept == nil {
		s.c.flush()
	}
	return nil
}

// CloseSend says that no more messages follow.
func (s *Stream) CloseSend() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.expire(); s.err == nil && !s.closed {
		s.closed = true
		_ = s.c.framer.WriteData(s.id, true, nil)
		s.c.flush()
	}
}

func (s *Stream) write(wire []byte, last bool) error {
	for len(wire) > 0 {
		n, err := s.await(len(wire))
		if err != nil {
			return err
		}
		s.respond()
		s.window -= int64(n)
		s.c.window -= int64(n)
		_ = s.c.framer.WriteData(s.id, last && n == len(wire) && s.c.accept == nil, wire[:n])
		s.c.waste.excuse(excusedOfSent)
		wire = wire[n:]
	}
	return nil
}

// await waits until some of so many bytes may be sent.
func (s *Stream) await(want int) (int, error) {
	for {
		s.expire()
		switch {
		case s.err != nil:
			return 0, s.sendError()
		case s.closed:
			return 0, Errorf(codes.Internal, "a message after the last one")
		}
		if len(s.c.out.bytes) >= maxPendingBytes {
			s.c.flush()
		}
		if n := min(int64(want), maxFrameBytes, s.window, s.c.window); n > 0 && len(s.c.out.bytes) < maxPendingBytes {
			return int(n), nil
		}
		s.c.flush()
		s.wake.Wait()
	}
}

// sendError: the stream's status comes from Receive.
func (s *Stream) sendError() error {
	if s.c.accept == nil {
		return io.EOF
	}
	return s.err
}

// respond writes a server's headers before its first message.
func (s *Stream) respond() {
	if s.c.accept == nil || s.headed {
		return
	}
	s.headed = true
	s.c.fields(s.id, false, responseHeaders...)
}

var responseHeaders = []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: contentType, Value: "application/grpc"}}

// finish is the end of the stream; the first one counts. The mutex is held.
func (s *Stream) finish(err error) {
	s.err = cmp.Or(s.err, err)
	delete(s.c.streams, s.id)
	if s.cancel != nil {
		s.cancel()
	}
	s.wake.Broadcast()
	s.c.vacated.Broadcast()
}

// letGo gives back what is held for messages that nobody takes. The mutex is held,
// and Give does not wait.
func (s *Stream) letGo() {
	s.ready = nil
	s.c.o.Received.Give(s.held)
	s.held = 0
}

// cancelWith ends the stream from this side.
func (s *Stream) cancelWith(err error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.err == nil {
		s.c.abandon(s, s.id, http2.ErrCodeCancel, err)
	}
}

// Close ends a client's stream, if it has not ended yet, and frees it.
func (s *Stream) Close() {
	s.cancelWith(Errorf(codes.Canceled, "the stream was closed"))
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.letGo()
}
