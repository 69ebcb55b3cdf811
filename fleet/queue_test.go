package fleet

import (
	"testing"

	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// A worker that has not heard of its frames for a while sends them again and again, and they
// may come at once. That is within its credit: each is kept once, and what came again is
// there to be answered.
func TestFramesThatComeAgain(t *testing.T) {
	q, a := queue{wake: make(chan struct{}, 1)}, &attempt{}
	put := func(seq uint64) bool {
		return q.put(arrived{a: a, frame: &fleetv1.Frame{What: &fleetv1.Frame_Data{Data: &fleetv1.Data{Seq: seq}}}, bytes: stream.Window / 4})
	}
	for range 10 {
		for seq := range uint64(4) {
			if !put(seq + 1) {
				t.Fatal("frames that came again are more than the worker may send")
			}
		}
	}
	put(6) // the fifth is missing
	list := q.take()
	if len(list) != 5 || list[4].frame.GetData().Seq != 0 {
		t.Errorf("%v", list)
	}
	if put(3); len(q.take()) != 1 {
		t.Error("one that comes again later is not answered")
	}
	for seq := uint64(5); put(seq); seq++ {
		if seq > 20 {
			t.Fatal("there is no bound")
		}
	}
}
