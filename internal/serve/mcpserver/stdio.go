package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/api"
)

// Serve serves one client over in and out until in ends or ctx does, and closes the
// Server and both streams. Malformed messages are answered with an error, and end
// nothing. When it returns all calls are over; it waits for at most a second until
// the client has taken their answers. An error says that a stream is broken, or
// that the client sent nonsense without taking the answers.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	p := newPipe(in, out)
	p.giveUp = s.giveUp
	defer p.Close()
	connection, err := s.sdk.Connect(context.WithoutCancel(ctx), p, nil)
	if err != nil {
		return fmt.Errorf("cannot serve MCP: %w", err)
	}
	over := make(chan error, 1)
	go func() { over <- connection.Wait() }()
	reason := api.ReasonDisconnect
	select {
	case <-ctx.Done():
		reason = api.ReasonShutdown
	case <-p.ended:
		if err = p.err; errors.Is(err, io.EOF) {
			err = nil
		}
	case err = <-over:
	}
	s.Abort(reason)
	s.Close()
	p.finish()
	if err != nil {
		return fmt.Errorf("the connection with the client is broken: %w", err)
	}
	return nil
}

// Kill ends all calls at once.
func (s *Server) Kill() {
	for _, c := range s.running() {
		c.kill(api.ReasonShutdown)
	}
}
