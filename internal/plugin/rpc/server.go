package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/stack"
	"github.com/toolhost/toolhost/internal/text"
)

// maxConns is how many connections a server serves at once: a host makes one.
const maxConns = 16

// Handler serves one stream; what it returns is the stream's status.
type Handler func(*Stream) error

// Server handles the streams of those who connect.
type Server struct {
	o        Options
	handlers map[string]Handler

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]bool
	stopped  bool
}

// NewServer returns a server of handlers by method, /package.Service/Method.
func NewServer(o Options, handlers map[string]Handler) *Server {
	return &Server{o: o, handlers: handlers, conns: map[*conn]bool{}}
}

// Serve takes connections, and returns when Stop was called and all of them have
// ended, or the listener fails.
func (s *Server) Serve(l net.Listener) error {
	if !s.listens(l) {
		return l.Close()
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	free := make(chan struct{}, maxConns)
	for {
		free <- struct{}{}
		nc, err := l.Accept()
		if err != nil {
			return s.explain(err)
		}
		serving.Go(func() {
			s.serve(nc)
			<-free
		})
	}
}

func (s *Server) listens(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = l
	return !s.stopped
}

func (s *Server) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	return err
}

// Stop takes no more connections and streams, and ends each connection when its
// last stream has ended. It does not wait for that.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for c := range s.conns {
		c.leave()
	}
}

func (s *Server) serve(nc net.Conn) {
	c := newConn(nc, s.o)
	c.accept = func(f *http2.MetaHeadersFrame) error { return s.accept(c, f) }
	c.mu.Lock()
	c.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams})
	c.flush()
	c.mu.Unlock()
	s.add(c)
	c.run()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.handling.Wait()
}

func (s *Server) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	if s.stopped {
		c.leave()
	}
}

// leave is the end of a connection whose streams may go on to theirs.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	_ = c.framer.WriteGoAway(c.last, http2.ErrCodeNo, nil)
	c.flush()
	c.endIfDone()
}

// endIfDone ends a server's connection once nothing more is to come.
func (c *conn) endIfDone() {
	if c.accept != nil && c.leaving && len(c.streams) == 0 && !c.writing {
		c.fail(unavailable(errors.New("the server has stopped")))
	}
}

// accept takes a stream that the client opens. The connection's mutex is held.
func (s *Server) accept(c *conn, f *http2.MetaHeadersFrame) error {
	refuse := func(code http2.ErrCode) error {
		c.last = f.StreamID
		c.reset(f.StreamID, code)
		return nil
	}
	switch {
	case f.Truncated:
		return refuse(http2.ErrCodeEnhanceYourCalm)
	case c.leaving, c.running >= maxStreams: // those count, too, that were reset and are still handled
		return refuse(http2.ErrCodeRefusedStream)
	}
	stream := c.newStream(f.StreamID, f.PseudoValue("path"))
	stream.ended = f.StreamEnded()
	if status := misfit(f); status != "" {
		c.fields(f.StreamID, true, hpack.HeaderField{Name: ":status", Value: status})
		stream.leave(io.EOF)
		return nil
	}
	handler := s.handlers[stream.method]
	if handler == nil {
		handler = unimplemented
	}
	if err := stream.endAfter(field(f, timeoutField)); err != nil {
		handler = func(*Stream) error { return err }
	}
	c.running++
	c.handling.Go(func() {
		stack.Shallow()
		err := errGoexit
		defer func() { stream.answer(err) }()
		err = handler(stream)
	})
	return nil
}

// errGoexit is the status of a handler that does not return.
var errGoexit = Errorf(codes.Internal, "the handler has ended its goroutine")

func unimplemented(s *Stream) error {
	return Errorf(codes.Unimplemented, "unknown method %s", text.Bytes(s.method, 256))
}

// endAfter gives the stream its context, which ends at the client's deadline.
func (s *Stream) endAfter(timeout string) error {
	s.ctx = s.c.ctx
	if timeout == "" {
		s.ctx, s.cancel = context.WithCancel(s.c.ctx)
		return nil
	}
	left, err := decodeTimeout(timeout)
	if err != nil {
		return Errorf(codes.Internal, "%v", err)
	}
	s.ctx, s.cancel = context.WithTimeout(s.c.ctx, left)
	return nil
}

// misfit is the HTTP status of a request that is not gRPC's.
func misfit(f *http2.MetaHeadersFrame) string {
	switch {
	case f.PseudoValue("method") != "POST":
		return "405"
	case !isGRPC(field(f, contentType)):
		return "415"
	}
	return ""
}

// answer ends a server's stream with a status.
func (s *Stream) answer(err error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.running--
	if s.closed { // all is said, though its handler may not have returned
		err = nil
	}
	if s.err == nil {
		trailer := StatusOf(err).trailer()
		if !s.headed { // one list is both
			trailer = append(slices.Clip(responseHeaders), trailer...)
		}
		s.c.fields(s.id, true, trailer...)
		s.leave(io.EOF)
	}
	s.letGo()
	s.c.flush()
	s.c.endIfDone()
}

// leave ends a stream to which all has been sent.
func (s *Stream) leave(err error) {
	if !s.ended {
		s.c.reset(s.id, http2.ErrCodeNo)
	}
	s.finish(err)
}

// Message is a pointer to T that is a message.
type Message[T any] interface {
	*T
	proto.Message
}

// Unary is the handler of a method with one request and one response.
func Unary[T any, Request Message[T], Response proto.Message](answer func(context.Context, Request) (Response, error)) Handler {
	return func(s *Stream) error {
		request := Request(new(T))
		if err := s.ReceiveMessage(request); err != nil {
			return err
		}
		response, err := answer(s.ctx, request)
		if err != nil {
			return err
		}
		return s.Send(response, true)
	}
}

// ReceiveMessage is Receive into a message. One that is missing is an *Error.
func (s *Stream) ReceiveMessage(m proto.Message) error {
	err := s.Receive(func(wire []byte) error {
		if err := proto.Unmarshal(wire, m); err != nil {
			return Errorf(codes.Internal, "cannot decode the message: %v", err)
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		return Errorf(codes.Internal, "the request has no message")
	}
	return err
}
