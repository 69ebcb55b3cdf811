package host

import (
	"context"
	"encoding/binary"
	"sync"
)

const (
	// frameCost is what a DATA frame takes in memory beside its bytes until the
	// message that it is a part of is whole.
	frameCost       = 192
	frameHeaderSize = 9 // RFC 9113, 4.1
	dataFrame       = 0
)

// intake counts what has been received of messages and is not decoded yet, in
// frames of HTTP/2: a message may come in very many of them, or never be whole.
type intake struct {
	memory Memory

	header [frameHeaderSize]byte
	have   int // of the header
	left   int // of the frame

	mu    sync.Mutex
	bytes int64 // of DATA frames, not decoded
	cost  int64 // of them, taken from memory
}

// read looks at what has come next on the connection, and waits until there may
// be so much.
func (i *intake) read(p []byte) error {
	bytes, cost := i.count(p)
	if cost == 0 {
		return nil
	}
	if err := i.take(cost); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bytes += bytes
	i.cost += cost
	return nil
}

func (i *intake) take(cost int64) error {
	if i.memory.Try(cost) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), memoryWait, errNoMemory)
	defer cancel()
	if err := i.memory.Take(ctx, cost); err != nil {
		return &MemoryError{err}
	}
	return nil
}

// count is how many bytes of DATA frames begin in p, and what they cost.
func (i *intake) count(p []byte) (bytes, cost int64) {
	for len(p) > 0 {
		if skipped := min(i.left, len(p)); skipped > 0 {
			i.left -= skipped
			p = p[skipped:]
			continue
		}
		n := copy(i.header[i.have:], p)
		i.have += n
		p = p[n:]
		if i.have < frameHeaderSize {
			break
		}
		i.have = 0
		i.left = int(binary.BigEndian.Uint32(i.header[:4]) >> 8)
		if i.header[3] == dataFrame {
			bytes += int64(i.left)
			cost += int64(i.left) + frameCost
		}
	}
	return bytes, cost
}

// decoded gives back what a message of so many bytes took: its part of all.
func (i *intake) decoded(length int) {
	const prefix = 5 // of each message in gRPC
	i.mu.Lock()
	gone := min(int64(length)+prefix, i.bytes)
	given := i.cost
	if i.bytes > gone {
		given = int64(float64(i.cost) * (float64(gone) / float64(i.bytes)))
	}
	i.bytes -= gone
	i.cost -= given
	i.mu.Unlock()
	i.memory.Give(given)
}
