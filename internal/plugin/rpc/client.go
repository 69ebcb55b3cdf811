package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// Client opens streams on a connection. Its methods may be called from any
// goroutine.
type Client struct {
	*conn
	ended  chan struct{}
	silent atomic.Bool
}

// NewClient takes the connection over. A server that says nothing within patience
// has it ended.
func NewClient(nc net.Conn, o Options, patience time.Duration) *Client {
	c := &Client{conn: newConn(nc, o), ended: make(chan struct{})}
	silence := time.AfterFunc(patience, func() {
		c.silent.Store(true)
		c.Fail(unavailable(fmt.Errorf("the server has said nothing for %v", patience)))
	})
	c.greeted = func() { silence.Stop() }
	c.out.bytes = append(c.out.bytes, http2.ClientPreface...)
	c.greet(http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	go func() {
		defer close(c.ended)
		defer silence.Stop()
		c.run()
	}()
	return c
}

// Silent says that the server was given up for saying nothing.
func (c *Client) Silent() bool { return c.silent.Load() }

// Broken says why this side has ended the connection, where that is the server's doing;
// empty if it has not.
func (c *Client) Broken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.guilt
}

// Close ends the connection and waits until nothing of it is left.
func (c *Client) Close() {
	c.Fail(unavailable(errors.New("it was closed")))
	<-c.ended
}

// Open begins a call of a method, /package.Service/Method, which ctx ends; each
// message that comes for it may have maxBytes. Close the stream when it is done
// with.
func (c *Client) Open(ctx context.Context, method string, maxBytes int) (*Stream, error) {
	if ctx.Err() != nil {
		return nil, StatusOf(ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := c.room(ctx)
	if err != nil {
		return nil, err
	}
	s := c.newStream(id, method)
	s.ctx, s.limit = ctx, maxBytes
	c.fields(id, false, requestFields(ctx, method)...)
	// What is written first goes along with it.
	watch := context.AfterFunc(ctx, func() { s.cancelWith(StatusOf(ctx.Err())) })
	s.cancel = func() { watch() }
	return s, nil
}

// room waits until the server takes one more stream.
func (c *Client) room(ctx context.Context) (uint32, error) {
	for {
		id, ok := c.nextID()
		switch {
		case c.err != nil:
			return 0, c.err
		case ctx.Err() != nil:
			return 0, StatusOf(ctx.Err())
		case c.leaving || !ok:
			return 0, Errorf(codes.Unavailable, "the server takes no further streams")
		case uint64(len(c.streams)) < uint64(c.peer.streams):
			return id, nil
		}
		c.waitForRoom(ctx)
	}
}

func (c *Client) waitForRoom(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.vacated.Broadcast()
	})
	defer stop()
	c.vacated.Wait()
}

func requestFields(ctx context.Context, method string) []hpack.HeaderField {
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "tool"},
		{Name: contentType, Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}
	if deadline, ok := ctx.Deadline(); ok {
		// One that changes with each call is not worth remembering.
		fields = append(fields, hpack.HeaderField{Name: timeoutField, Value: encodeTimeout(time.Until(deadline)), Sensitive: true})
	}
	return fields
}

const timeoutField = "grpc-timeout"
