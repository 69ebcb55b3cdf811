// Package stream carries one call's frames over a link that may drop, repeat and overtake
// them: each is taken once and in order, and no more are on their way than the receiver
// has room for. It is pure; its types are not safe for concurrent use.
//
// What may be lost at the source is dropped there while there is no credit, and counted,
// and the next frame that goes says how many were before it. So what a receiver has is a
// prefix of what was sent, with exact gaps.
package stream

// Window is how many bytes of a call's frames may be on their way, and Spare how many of
// them may be before what may be lost: with less behind it, what comes next comes soon.
const (
	Window = 1 << 20
	Spare  = Window / 4
)

// Overhead is what a frame counts beside its payload, so that empty ones are bounded, too.
const Overhead = 64

// Frame is one of a call.
type Frame[T any] struct {
	Seq     uint64 // from 1
	Missed  uint64 // how many were dropped for want of credit just before this one
	Payload T
	cost    int
}

// Sender numbers frames and keeps those that were not acknowledged. The zero value is the
// beginning of a call.
type Sender[T any] struct {
	sent    uint64
	missed  uint64
	unacked []Frame[T]
	used    int
}

// Push gives a payload of so many bytes its number, if there is credit. A payload that
// alone is larger than the window goes when nothing else is on its way.
func (s *Sender[T]) Push(payload T, size int) (f Frame[T], ok bool) {
	if !s.fits(size, Window) {
		return Frame[T]{}, false
	}
	return s.Force(payload, size), true
}

// Lossy is Push for what may be lost, and is counted as dropped where it is.
func (s *Sender[T]) Lossy(payload T, size int) (f Frame[T], ok bool) {
	if s.used > Spare || !s.fits(size, Window) {
		s.Drop(1)
		return Frame[T]{}, false
	}
	return s.Force(payload, size), true
}

func (s *Sender[T]) fits(size, window int) bool {
	return s.used == 0 || s.used+size+Overhead <= window
}

// Force is Push with or without credit, for what is small and that others bound.
func (s *Sender[T]) Force(payload T, size int) Frame[T] {
	f := Frame[T]{Seq: s.sent + 1, Missed: s.missed, Payload: payload, cost: size + Overhead}
	s.sent, s.missed = f.Seq, 0
	s.unacked, s.used = append(s.unacked, f), s.used+f.cost
	return f
}

// Drop counts payloads that are not sent.
func (s *Sender[T]) Drop(n int) { s.missed += uint64(n) }

// Ack takes the receiver's word that it has all frames through one. It says whether that
// is new.
func (s *Sender[T]) Ack(through uint64) (news bool) {
	for len(s.unacked) > 0 && s.unacked[0].Seq <= through {
		s.used -= s.unacked[0].cost
		s.unacked[0] = Frame[T]{}
		s.unacked, news = s.unacked[1:], true
	}
	return news
}

// Unacked are the frames to be sent again, oldest first. They are the sender's.
func (s *Sender[T]) Unacked() []Frame[T] { return s.unacked }

// Done says whether all frames were acknowledged.
func (s *Sender[T]) Done() bool { return len(s.unacked) == 0 }

// Receiver takes frames. The zero value is the beginning of a call.
type Receiver struct {
	taken  uint64
	missed uint64
	owed   int // bytes taken since the last acknowledgement
}

// Take says whether a frame, with a payload of so many bytes, is the next one. Others were taken before, or follow one that
// is not there yet and will be sent again.
func (r *Receiver) Take(seq, missed uint64, size int) bool {
	if seq != r.taken+1 {
		return false
	}
	r.taken, r.missed, r.owed = seq, r.missed+missed, r.owed+size+Overhead
	return true
}

// Taken is the newest frame that was taken, and what is to be acknowledged.
func (r *Receiver) Taken() uint64 { return r.taken }

// Missed is how many the sender dropped, as far as frames have told.
func (r *Receiver) Missed() uint64 { return r.missed }

// Owes says whether so much was taken since the last acknowledgement that the next should
// not wait.
func (r *Receiver) Owes() bool { return r.owed >= Spare/4 }

// Acked says that Taken was acknowledged. Pending says whether anything is to be.
func (r *Receiver) Acked()        { r.owed = 0 }
func (r *Receiver) Pending() bool { return r.owed > 0 }
