package worker

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

const (
	// eventBuffer is how far sending may lag before events are dropped.
	eventBuffer = 64
	// maxEventBytes bounds an event: the engine takes messages of 1 MiB.
	maxEventBytes = 512 << 10
	// partBytes is how much of a result is in one frame.
	partBytes = 256 << 10
	// againAfter is how long an acknowledgement may take before frames are sent again.
	againAfter = 500 * time.Millisecond
	// keepResult is how long a result is kept whose caller is not heard.
	keepResult = 10 * time.Minute
)

func encode(event api.Event) []byte {
	raw, err := json.Marshal(event)
	if err != nil {
		return nil // a bug, and one event less
	}
	return raw
}

// split makes frames of a result.
func split(r *api.Result) (parts []*fleetv1.Data) {
	raw, err := json.Marshal(r)
	if err != nil {
		raw = []byte("null") // a bug; the caller says that the result cannot be read
	}
	for len(raw) > partBytes {
		parts, raw = append(parts, &fleetv1.Data{What: &fleetv1.Data_Result{Result: raw[:partBytes]}}), raw[partBytes:]
	}
	return append(parts, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: raw}})
}

// neverOf says why a call cannot be made here.
func neverOf(why fleetv1.Why, err error) *fleetv1.Never {
	n := &fleetv1.Never{Why: why, Detail: err.Error()}
	if r, ok := errors.AsType[*supervisor.Refusal](err); ok {
		n.Status, n.Reason, n.Described = string(r.Status), string(r.Reason), r.Describing != nil && r.Describing.Retry.SideEffects != "none"
	}
	return n
}

// begunOf describes a call that starts to its caller.
func begunOf(p *supervisor.Prepared) *fleetv1.Started {
	begun := &fleetv1.Started{GraceMs: p.Grace().Milliseconds()}
	if t := p.Timeout().Timeout; t != budget.Infinite {
		begun.TimeoutMs = t.Milliseconds()
	}
	return begun
}
