package stream

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// link drops, repeats, delays and reorders what goes over it.
type link[T any] struct {
	waiting []T
	rand    *rand.Rand
}

func (l *link[T]) send(v T) {
	for range []int{1, 1, 1, 1, 0, 2}[l.rand.IntN(6)] {
		l.waiting = append(l.waiting, v)
	}
}

func (l *link[T]) receive() (v T, ok bool) {
	if len(l.waiting) == 0 {
		return v, false
	}
	i := 0
	if l.rand.IntN(4) == 0 {
		i = l.rand.IntN(len(l.waiting))
	}
	v = l.waiting[i]
	l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
	return v, true
}

// world is a call's stream over two bad links. Payloads begin with a count of all that
// the source had, dropped ones too.
type world struct {
	t      testing.TB
	rand   *rand.Rand
	s      Sender[[]byte]
	r      Receiver
	frames link[Frame[[]byte]]
	acks   link[uint64]
	made   uint32
	got    []uint32
	at     []uint64 // how many were missed before each
}

func newWorld(t testing.TB, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	return &world{t: t, rand: r, frames: link[Frame[[]byte]]{rand: r}, acks: link[uint64]{rand: r}}
}

func (w *world) source(size int) {
	w.made++
	payload := binary.BigEndian.AppendUint32(nil, w.made)
	payload = append(payload, bytes.Repeat([]byte{1}, size)...)
	if f, ok := w.s.Lossy(payload, len(payload)); ok {
		w.frames.send(f)
	}
}

func (w *world) take() {
	f, ok := w.frames.receive()
	if !ok || !w.r.Take(f.Seq, f.Missed, len(f.Payload)) {
		return
	}
	w.got, w.at = append(w.got, binary.BigEndian.Uint32(f.Payload)), append(w.at, w.r.Missed())
	if w.r.Owes() {
		w.ack()
	}
}

func (w *world) ack() {
	w.acks.send(w.r.Taken())
	w.r.Acked()
}

func (w *world) step() {
	switch w.rand.IntN(8) {
	case 0, 1:
		w.source(w.rand.IntN(Window / 5))
	case 2, 3, 4:
		w.take()
	case 5:
		w.ack()
	case 6:
		if through, ok := w.acks.receive(); ok {
			w.s.Ack(through)
		}
	case 7:
		for _, f := range w.s.Unacked() {
			w.frames.send(f)
		}
	}
	w.check()
}

// check: what was received is the source's in order, the gaps are those that are counted,
// and no more is on its way than the window.
func (w *world) check() {
	for i, n := range w.got {
		if want := uint64(i+1) + w.at[i]; uint64(n) != want {
			w.t.Fatalf("place %d has %d after %d missed: %v", i, n, w.at[i], w.got)
		}
	}
	used := 0
	for _, f := range w.s.Unacked() {
		used += f.cost
	}
	if used != w.s.used || used > Window && len(w.s.Unacked()) > 1 {
		w.t.Fatalf("%d bytes are on their way, %d are counted", used, w.s.used)
	}
}

// settle has everything come in the end.
func (w *world) settle() {
	for round := 0; !w.s.Done(); round++ {
		if round > 10000 {
			w.t.Fatal("it never settles")
		}
		for _, f := range w.s.Unacked() {
			w.frames.send(f)
		}
		for len(w.frames.waiting) > 0 {
			w.take()
		}
		w.ack()
		for len(w.acks.waiting) > 0 {
			through, _ := w.acks.receive()
			w.s.Ack(through)
		}
		w.check()
	}
	if uint64(len(w.got))+w.r.Missed()+w.s.missed != uint64(w.made) {
		w.t.Fatalf("of %d made, %d came and %d were missed", w.made, len(w.got), w.r.Missed()+w.s.missed)
	}
}

func TestAPrefixWithExactGaps(t *testing.T) {
	missed := uint64(0)
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		for range 400 {
			w.step()
		}
		w.settle()
		missed += w.r.Missed()
	}
	if missed == 0 {
		t.Error("nothing was ever without credit: this tests nothing")
	}
}

func TestCredit(t *testing.T) {
	var s Sender[[]byte]
	if _, ok := s.Push(nil, 2*Window); !ok {
		t.Error("a large payload never goes")
	}
	if _, ok := s.Push(nil, 0); ok {
		t.Error("there is credit beyond the window")
	}
	s.Drop(1)
	if s.Ack(0) || !s.Ack(1) || s.Ack(1) {
		t.Error("an acknowledgement is news once")
	}
	if f, ok := s.Push(nil, 0); !ok || f.Missed != 1 || f.Seq != 2 {
		t.Errorf("%+v, %v", f, ok)
	}
	var r Receiver
	if r.Pending() || r.Take(2, 0, 0) || !r.Take(1, 0, 0) || !r.Pending() || r.Owes() {
		t.Errorf("%+v", r)
	}
	if !r.Take(2, 0, Spare/4) || !r.Owes() {
		t.Errorf("%+v", r)
	}
}

// Whatever comes from the other side, nothing is counted twice and nothing panics.
func FuzzHostile(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2, 255, 7, 7})
	f.Fuzz(func(t *testing.T, seed uint64, events []byte) {
		w := newWorld(t, seed)
		for _, e := range events {
			switch {
			case e < 100:
				w.step()
			case e < 180:
				w.s.Ack(min(uint64(e), w.r.Taken())) // an honest receiver's, of any age
			default: // a frame out of nowhere, not the next one
				if next := w.r.Taken() + 1; uint64(e) != next {
					w.r.Take(uint64(e), 9, 0)
				}
			}
		}
		w.settle()
	})
}

// What may be lost leaves room in the window for what may not.
func TestLossy(t *testing.T) {
	var s Sender[int]
	n := 0
	for ; n < 1000; n++ {
		if _, ok := s.Lossy(n, Spare/8); !ok {
			break
		}
	}
	if _, ok := s.Push(n, Spare/8); n != 8 || !ok { // the last one begins within it
		t.Errorf("%d went, and one that may not be lost: %v", n, ok)
	}
	if s.Ack(uint64(n)); s.Done() {
		t.Fatal("nothing is left")
	}
	if _, ok := s.Lossy(n, 2*Spare); !ok {
		t.Error("a large one is dropped where there is credit")
	}
	if s.Ack(uint64(n + 2)); !s.Done() {
		t.Fatal("something is left")
	}
	if f, ok := s.Lossy(n, Window); !ok || f.Missed != 0 { // that of before was counted with the push
		t.Errorf("%+v, %v", f, ok)
	}
}
