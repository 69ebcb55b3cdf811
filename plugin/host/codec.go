package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// Memory is what data from tools may take in the host, shared with others. Its
// methods may be called from any goroutine.
type Memory interface {
	// Try takes so much more if that needs no wait.
	Try(bytes int64) bool
	// Take waits until so much more may be used; an error says why it may not.
	Take(ctx context.Context, bytes int64) error
	// Give takes back what Take gave.
	Give(bytes int64)
}

// unbounded is the Memory of a host that has given none.
type unbounded struct{}

func (unbounded) Try(int64) bool { return true }

func (unbounded) Take(context.Context, int64) error { return nil }

func (unbounded) Give(int64) {}

// MemoryError says that the host had no memory for what a tool sent.
type MemoryError struct{ Err error }

func (e *MemoryError) Error() string { return "cannot take the tool's message: " + e.Err.Error() }

func (e *MemoryError) Unwrap() error { return e.Err }

// memoryWait is how long a message waits for memory.
const memoryWait = 10 * time.Second

// answerBytes bounds the answers that say nothing.
const answerBytes = 4 << 10

// decodedLimit is what a message may take in memory, by what it may have on the wire.
func decodedLimit(maxMessageBytes int) int64 { return 2 * int64(maxMessageBytes) }

// codec decodes the messages of one call. Each is priced first, and the memory
// for it taken, which is held until the call asks for the next message.
type codec struct {
	encoding.CodecV2 // gRPC's own; it encodes
	ctx              context.Context
	memory           Memory
	limit            int64
	received         func(bytes int) // that have left gRPC's hands
	taken            int64
	failed           atomic.Pointer[error] // the first: gRPC passes on no more than its text
}

func newCodec(ctx context.Context, o Options, received func(int)) *codec {
	return &codec{
		CodecV2: encoding.GetCodecV2(proto.Name), ctx: ctx, memory: o.Decoded,
		limit: decodedLimit(o.MaxMessageBytes), received: received,
	}
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	defer c.received(data.Len())
	c.release()
	err := c.unmarshal(data, v)
	if err != nil {
		c.failed.CompareAndSwap(nil, &err)
	}
	return err
}

func (c *codec) unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(protobuf.Message)
	if !ok {
		return fmt.Errorf("bug: a %T is not a message", v)
	}
	whole := int64(data.Len()) // in one piece, which pricing needs
	if err := c.take(whole); err != nil {
		return err
	}
	defer func() { c.give(whole) }()
	wire := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer wire.Free()
	of := message.ProtoReflect().Descriptor()
	cost, err := price(wire.ReadOnlyData(), of, c.limit)
	if err != nil {
		return &ProtocolError{fmt.Sprintf("a message of %d bytes (%s) is not taken: %v", whole, of.Name(), err)}
	}
	if err := c.take(cost); err != nil {
		return err
	}
	if err := (protobuf.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire.ReadOnlyData(), message); err != nil {
		return &ProtocolError{fmt.Sprintf("a message of %d bytes is not a valid %s: %v", whole, of.Name(), err)}
	}
	return nil
}

func (c *codec) take(bytes int64) error {
	if c.memory.Try(bytes) {
		c.taken += bytes
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(c.ctx, memoryWait, errNoMemory)
	defer cancel()
	if err := c.memory.Take(ctx, bytes); err != nil {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		return &MemoryError{err}
	}
	c.taken += bytes
	return nil
}

var errNoMemory = fmt.Errorf("other calls have held the memory for what tools send for %s: try again later", memoryWait)

func (c *codec) give(bytes int64) {
	if bytes > 0 {
		c.taken -= bytes
		c.memory.Give(bytes)
	}
}

// release gives back what the last message took. Call it when nothing of it is
// looked at any more.
func (c *codec) release() { c.give(c.taken) }

// options are those of the codec's call.
func (c *codec) options(more ...grpc.CallOption) []grpc.CallOption {
	return append(more, grpc.ForceCodecV2(c))
}

// explain prefers what the codec found to gRPC's words for it.
func (c *codec) explain(err error) error {
	if failed := c.failed.Load(); failed != nil {
		return *failed
	}
	return err
}
