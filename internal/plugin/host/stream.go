package host

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/internal/plugin/rpc"
)

// stream is one request and what comes for it, as messages of bounded cost.
type stream struct {
	*rpc.Stream
	decoder
	began time.Time // of the last decoding
}

// open sends a request; maxBytes bounds each message that comes for it.
func (c *Conn) open(ctx context.Context, method string, request proto.Message, maxBytes int) (*stream, error) {
	opened, err := c.client.Open(ctx, handshake.Service+method, maxBytes)
	if err != nil {
		return nil, err
	}
	s := &stream{Stream: opened, decoder: decoder{ctx: ctx, memory: c.options.Decoded, limit: maxDecodedBytes}}
	if err := opened.Send(request, true); err != nil && !errors.Is(err, io.EOF) { // whose reason comes with the answer
		s.close()
		return nil, err
	}
	return s, nil
}

// receive waits for the next message; io.EOF says that there was a last one.
func (s *stream) receive(m proto.Message) error {
	return s.Receive(func(wire []byte) error {
		s.began = time.Now()
		return s.decode(wire, m)
	})
}

func (s *stream) close() {
	s.Close()
	s.release()
}

// invoke sends a request that has one answer.
func (c *Conn) invoke(ctx context.Context, method string, request, answer proto.Message, maxBytes int) error {
	s, err := c.open(ctx, method, request, maxBytes)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.receive(answer); err != nil {
		if errors.Is(err, io.EOF) {
			return &ProtocolError{method + " was answered with nothing"}
		}
		return err
	}
	if err := s.Receive(func([]byte) error { return &ProtocolError{method + " was answered twice"} }); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
