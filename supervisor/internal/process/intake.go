package process

import (
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/budget/memory"
	"github.com/toolhost/toolhost/internal/plugin/host"
)

// What all tools together may have the host keep of what they send: messages
// that are not whole yet, and those that are being decoded. One connection has an
// eighth of each at most; its first bytes are free, so that small messages never
// wait for others' large ones.
const (
	receivedBytes = 64 << 20
	decodedBytes  = 96 << 20
	freeBytes     = 64 << 10
	// memoryParts: each of them is a seventh of a small host's memory at most.
	memoryParts = 7
	// A message that is not whole after receivePatience makes room for others
	// that wait; decoding always ends by itself.
	receivePatience = 2 * time.Second
	decodePatience  = time.Minute
)

// Intake is the memory for what tools send.
type Intake struct{ received, decoded *memory.Account }

// NewIntake has all of it free.
func NewIntake() Intake {
	received, decoded := memory.Within(receivedBytes, memoryParts), memory.Within(decodedBytes, memoryParts)
	return Intake{memory.New(received, receivePatience), memory.New(decoded, decodePatience)}
}

// held is what a connection has of it.
type held struct {
	received, decoded *memory.Holder
	conn              atomic.Pointer[host.Conn] // once there is one
}

func (i Intake) hold(key string) *held {
	h := &held{decoded: i.decoded.Hold(key, freeBytes, nil)}
	h.received = i.received.Hold(key, freeBytes, h.cutOff)
	return h
}

// release gives it back. h is nil for a process that nobody has connected to.
func (h *held) release() {
	if h == nil {
		return
	}
	h.received.Release()
	h.decoded.Release()
}

// cutOff ends a connection whose message takes too long while others wait.
func (h *held) cutOff() {
	if conn := h.conn.Load(); conn != nil {
		conn.Fail(&host.MemoryError{Err: memory.ErrLost})
	}
}
