package link

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// wire is a frame with so many empty ones behind it, each with more behind it where deep.
func wire(t *testing.T, n int, deep bool) []byte {
	t.Helper()
	inner := []byte{}
	if deep {
		inner = wire(t, 1, false)
	}
	f := &fleetv1.Frame{Epoch: "e", What: &fleetv1.Frame_Started{Started: &fleetv1.Started{}}}
	for range n {
		f.Then = append(f.Then, inner)
	}
	raw, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestFrames(t *testing.T) {
	frames, err := Frames(wire(t, MaxFrames-1, false))
	if err != nil || len(frames) != MaxFrames || frames[0].GetStarted() == nil || frames[0].Then != nil {
		t.Errorf("%d frames, %v", len(frames), err)
	}
	for name, message := range map[string][]byte{
		"one too many":                wire(t, MaxFrames, false),
		"a megabyte of empty ones":    append(wire(t, 0, false), bytes.Repeat([]byte{11<<3 | 2, 0}, 512<<10)...),
		"more behind those behind":    wire(t, 1, true),
		"a length beyond the message": append(wire(t, 0, false), 11<<3|2, 100),
		"what follows is not a frame": append(wire(t, 0, false), 11<<3|2, 1, 0xff),
	} {
		if frames, err := Frames(message); err == nil {
			t.Errorf("%s: %d frames", name, len(frames))
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{11<<3 | 2, 0})
	f.Fuzz(func(t *testing.T, message []byte) {
		if frames, err := Frames(message); err == nil && (len(frames) == 0 || len(frames) > MaxFrames) {
			t.Errorf("%d frames", len(frames))
		}
	})
}
