package worker

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/fleet/internal/link"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// said collects messages as they cross the wire.
type said struct {
	t        *testing.T
	messages [][]*fleetv1.Frame
}

func (s *said) say(f *fleetv1.Frame) {
	raw, err := proto.Marshal(f)
	if err != nil {
		s.t.Fatal(err)
	}
	frames, err := link.Frames(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	s.messages = append(s.messages, frames)
}

// sizes are how many frames each message has, whose data must be all, once and in order.
func (s *said) sizes(want uint64) (sizes []int) {
	s.t.Helper()
	seq := uint64(0)
	for _, frames := range s.messages {
		sizes = append(sizes, len(frames))
		for _, f := range frames {
			if d := f.GetData(); d != nil {
				if seq++; d.Seq != seq {
					s.t.Errorf("data %d is in the place of %d", d.Seq, seq)
				}
			}
		}
	}
	if seq != want {
		s.t.Errorf("%d data came, of %d", seq, want)
	}
	return sizes
}

func TestWhatIsSaidAtOnceIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &said{t: t}
		b := newBurst(true, got.say)
		b.add(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{}}})
		b.push(&fleetv1.Data{What: &fleetv1.Data_Event{Event: []byte("{}")}})
		b.push(&fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte("{}")}})
		began := time.Now()
		if <-b.due.C; time.Since(began) != gatherFor || len(got.messages) != 0 {
			t.Errorf("due after %s with %d messages sent", time.Since(began), len(got.messages))
		}
		b.flush()
		b.flush()
		if sizes := got.sizes(2); len(sizes) != 1 || got.messages[0][0].GetStarted() == nil {
			t.Errorf("messages of %v frames, beginning with %v", sizes, got.messages[0][0])
		}
		select {
		case <-b.due.C:
			t.Error("it is due with nothing to send")
		case <-time.After(time.Second):
		}
	})
}

func TestBurstsAreBounded(t *testing.T) {
	got := &said{t: t}
	b := newBurst(true, got.say)
	for range link.MaxFrames + 1 {
		b.push(&fleetv1.Data{What: &fleetv1.Data_Event{Event: []byte("{}")}})
	}
	b.push(&fleetv1.Data{What: &fleetv1.Data_Result{Result: bytes.Repeat([]byte("r"), maxBurst)}})
	b.push(&fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte("{}")}})
	b.flush()
	if sizes := got.sizes(link.MaxFrames + 3); len(sizes) != 4 || sizes[0] != link.MaxFrames {
		t.Errorf("messages of %v frames", sizes)
	}
}

// What is not acknowledged is overdue again and again, counted from the last news; nothing is
// where all was.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &said{t: t}
		b := newBurst(true, got.say)
		data := func() { b.push(&fleetv1.Data{What: &fleetv1.Data_Event{Event: []byte("{}")}}) }
		began := time.Now()
		after := func(want time.Duration) {
			t.Helper()
			select {
			case <-b.overdue.C:
				if b.again(); time.Since(began) != want {
					t.Errorf("overdue after %s, want %s", time.Since(began), want)
				}
			case <-time.After(time.Hour):
				if want != time.Hour {
					t.Errorf("it is not overdue after %s", want)
				}
			}
			began = time.Now()
		}
		after(time.Hour) // nothing was sent
		data()
		time.Sleep(againAfter / 2)
		data() // which does not put it off
		after(againAfter)
		after(againAfter)
		time.Sleep(againAfter / 2)
		b.acked(0) // no news
		after(againAfter)
		b.acked(1)
		after(againAfter)
		b.acked(2)
		after(time.Hour)
	})
}
