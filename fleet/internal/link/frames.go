package link

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// MaxFrames are in one message.
const MaxFrames = 64

const fieldThen = 11 // of Frame, for which there is no constant in the generated code

// Frames are those of a worker's message: one, and those that follow it there. Its bytes
// bound what they take in memory.
func Frames(message []byte) ([]*fleetv1.Frame, error) {
	first, err := frame(message, MaxFrames-1)
	if err != nil {
		return nil, err
	}
	frames := append(make([]*fleetv1.Frame, 0, 1+len(first.Then)), first)
	for _, raw := range first.Then {
		f, err := frame(raw, 0)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	first.Then = nil
	return frames, nil
}

// frame reads one that so many follow at most. They are counted first, since each takes
// more room than it has bytes.
func frame(raw []byte, most int) (*fleetv1.Frame, error) {
	for rest, n := raw, 0; len(rest) > 0; rest = rest[n:] {
		var field protowire.Number
		if field, _, n = protowire.ConsumeField(rest); n < 0 {
			return nil, fmt.Errorf("a frame cannot be read: %w", protowire.ParseError(n))
		}
		if field == fieldThen {
			most--
		}
	}
	if most < 0 {
		return nil, errors.New("more frames are in one message than may be")
	}
	f := &fleetv1.Frame{}
	return f, proto.Unmarshal(raw, f)
}
