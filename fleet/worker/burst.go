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

// burst gathers frames of an attempt that go in one message. It must be flushed when due
// fires.
type burst struct {
	say   func(*fleetv1.Frame)
	quiet bool           // the caller wants no events but output
	first *fleetv1.Frame // nil where nothing waits
	bytes int
	due   *time.Timer
}

func newBurst(quiet bool, say func(*fleetv1.Frame)) *burst {
	due := time.NewTimer(0)
	due.Stop()
	return &burst{say: say, quiet: quiet, due: due}
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
func (b *burst) event(s *stream.Sender[*fleetv1.Data], e api.Event) {
	s.Drop(e.Missed)
	if e.Missed = 0; b.quiet && e.Kind != api.EventOutput || !slices.Contains(portable.WorkersEvents, e.Kind) {
		return
	}
	d := encode(e)
	size := proto.Size(d)
	if size > maxEventBytes {
		s.Drop(1) // the result has what is in it
	} else if f, ok := s.Lossy(d, size); ok {
		b.frame(f)
	}
}

// push sends data if there is credit.
func (b *burst) push(s *stream.Sender[*fleetv1.Data], d *fleetv1.Data) bool {
	f, ok := s.Push(d, proto.Size(d))
	if ok {
		b.frame(f)
	}
	return ok
}

// again sends what was not acknowledged.
func (b *burst) again(s *stream.Sender[*fleetv1.Data]) {
	for _, f := range s.Unacked() {
		b.frame(f)
	}
}

func (b *burst) frame(f stream.Frame[*fleetv1.Data]) {
	f.Payload.Seq, f.Payload.Missed = f.Seq, f.Missed
	b.add(&fleetv1.Frame{What: &fleetv1.Frame_Data{Data: f.Payload}})
}
