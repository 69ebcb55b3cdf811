package worker

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

const (
	// gatherFor is how long a frame may wait for those that follow it: each message has
	// the worker, the engine and the caller woken up.
	gatherFor = time.Millisecond
	// maxBurst bounds the bytes of one message; a larger frame goes alone.
	maxBurst = 64 << 10
)

// burst gathers frames of an attempt that go in one message, and keeps those that carry
// data until they are acknowledged. It must be flushed when due fires, and data sent again
// when overdue does.
type burst struct {
	say   func(*fleetv1.Frame)
	quiet bool           // the caller wants no events but output
	first *fleetv1.Frame // nil where nothing waits
	bytes int
	due   *time.Timer

	data    stream.Sender[*fleetv1.Data]
	heard   time.Time // when something new was acknowledged
	overdue *time.Timer
	waits   bool // for an acknowledgement
}

func newBurst(quiet bool, say func(*fleetv1.Frame)) *burst {
	due, overdue := time.NewTimer(0), time.NewTimer(againAfter)
	due.Stop()
	overdue.Stop()
	return &burst{say: say, quiet: quiet, due: due, overdue: overdue}
}

func (b *burst) stop() {
	b.due.Stop()
	b.overdue.Stop()
}

// add has a frame go with those that wait, within gatherFor.
func (b *burst) add(f *fleetv1.Frame) {
	size := proto.Size(f)
	if b.first != nil && (b.bytes+size > maxBurst || len(b.first.Then) == link.MaxFrames-1) {
		b.flush()
	}
	b.bytes += size
	if b.first == nil {
		b.first = f
		b.due.Reset(gatherFor)
		return
	}
	if raw, err := proto.Marshal(f); err == nil {
		b.first.Then = append(b.first.Then, raw)
	}
}

// flush sends what waits.
func (b *burst) flush() {
	if b.first == nil {
		return
	}
	b.due.Stop()
	b.say(b.first)
	b.first, b.bytes = nil, 0
}

// event sends an event, if there is credit for it, and the caller does not make it itself.
func (b *burst) event(e api.Event) {
	b.data.Drop(e.Missed)
	if e.Missed = 0; b.quiet && e.Kind != api.EventOutput || !slices.Contains(portable.WorkersEvents, e.Kind) {
		return
	}
	d := encode(e)
	size := proto.Size(d)
	if size > maxEventBytes {
		b.data.Drop(1) // the result has what is in it
	} else if f, ok := b.data.Lossy(d, size); ok {
		b.frame(f)
	}
}

// push sends data if there is credit.
func (b *burst) push(d *fleetv1.Data) bool {
	f, ok := b.data.Push(d, proto.Size(d))
	if ok {
		b.frame(f)
	}
	return ok
}

// force sends data with or without credit: others bound it.
func (b *burst) force(d *fleetv1.Data) { b.frame(b.data.Force(d, proto.Size(d))) }

// acked takes an acknowledgement.
func (b *burst) acked(through uint64) {
	if b.data.Ack(through) {
		b.heard, b.waits = time.Now(), false
		b.wait()
	}
}

// again sends what was not acknowledged.
func (b *burst) again() {
	for _, f := range b.data.Unacked() {
		b.frame(f)
	}
	b.waits = false
	b.wait()
}

func (b *burst) frame(f stream.Frame[*fleetv1.Data]) {
	f.Payload.Seq, f.Payload.Missed = f.Seq, f.Missed
	b.add(&fleetv1.Frame{What: &fleetv1.Frame_Data{Data: f.Payload}})
	b.wait()
}

// wait begins to wait for an acknowledgement, or ends that where all came.
func (b *burst) wait() {
	switch done := b.data.Done(); {
	case done:
		b.overdue.Stop()
		b.waits = false
	case !b.waits:
		b.overdue.Reset(againAfter)
		b.waits = true
	}
}
