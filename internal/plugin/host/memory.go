package host

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
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

// maxDecodedBytes bounds what one message takes in memory.
const maxDecodedBytes = 2 * handshake.MaxMessageBytes

// decoder decodes the messages of one call. Each is priced first, and the memory
// for it taken, which is held until the call asks for the next message.
type decoder struct {
	ctx    context.Context
	memory Memory
	limit  int64
	taken  int64
}

func (d *decoder) decode(wire []byte, message proto.Message) error {
	d.release()
	of := message.ProtoReflect().Descriptor()
	cost, err := price(wire, of, d.limit)
	if err != nil {
		return &ProtocolError{fmt.Sprintf("a message of %d bytes (%s) is not taken: %v", len(wire), of.Name(), err)}
	}
	if err := take(d.ctx, d.memory, cost); err != nil {
		return err
	}
	d.taken = cost
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire, message); err != nil {
		return &ProtocolError{fmt.Sprintf("a message of %d bytes is not a valid %s: %v", len(wire), of.Name(), err)}
	}
	return nil
}

// release gives back what the last message took. Call it when nothing of it is
// looked at any more.
func (d *decoder) release() {
	if d.taken > 0 {
		d.memory.Give(d.taken)
		d.taken = 0
	}
}

// take waits for memory, and not for ever.
func take(ctx context.Context, from Memory, bytes int64) error {
	if from.Try(bytes) {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, memoryWait, errNoMemory)
	defer cancel()
	if err := from.Take(waiting, bytes); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &MemoryError{err}
	}
	return nil
}

var errNoMemory = fmt.Errorf("other calls have held the memory for what tools send for %s: try again later", memoryWait)

// received is the memory of what has come and is not decoded yet.
type received struct{ Memory }

func (r received) Take(ctx context.Context, bytes int64) error { return take(ctx, r.Memory, bytes) }
