package fleet

import (
	"testing"

	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// What is sent again while a call does not come to it takes no room: the worker has sent no
// more than it may. Once it was taken, it comes to the call again, which acknowledges it.
func TestCopiesInTheQueueDoNotCount(t *testing.T) {
	q, a := &queue{wake: make(chan struct{}, 1)}, &attempt{}
	send := func(seqs ...uint64) bool {
		x := arrived{a: a, bytes: stream.Window / 2}
		for _, seq := range seqs {
			x.frames = append(x.frames, &fleetv1.Frame{What: &fleetv1.Frame_Data{Data: &fleetv1.Data{Seq: seq}}})
		}
		return q.put(x)
	}
	for range 10 {
		if !send(1) || !send(2) {
			t.Fatal("a copy counts")
		}
	}
	if !send(1, 2, 3) {
		t.Fatal("what is new finds no room")
	}
	list := q.take()
	if len(list) != 3 || len(list[2].frames) != 1 || list[2].frames[0].GetData().Seq != 3 {
		t.Errorf("%v", list)
	}
	if !send(1) || len(q.take()) != 1 {
		t.Error("what was taken does not come again")
	}
	for seq := range uint64(4) {
		send(10 + seq)
	}
	if send(20) {
		t.Error("there is no bound")
	}
}
