package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

const (
	// eventBuffer is how far sending may lag before events are dropped.
	eventBuffer = 64
	// maxEventBytes bounds an event: the engine takes messages of 1 MiB.
	maxEventBytes = 512 << 10
	// againAfter is how long an acknowledgement may take before frames are sent again. Callers
	// send those that do not hurry ten times a second.
	againAfter = 300 * time.Millisecond
	// keepResult is how long a result is kept whose caller is not heard.
	keepResult = 10 * time.Minute
)

// encode has an event's text beside its JSON.
func encode(event api.Event) *fleetv1.Data {
	d := &fleetv1.Data{}
	if c := event.Content; c != nil && c.Text != "" {
		short := *c
		d.Text, short.Text, event.Content = []byte(c.Text), "", &short
	}
	raw, err := json.Marshal(event)
	if err != nil {
		raw, d.Text = nil, nil // a bug, and one event less
	}
	d.What = &fleetv1.Data_Event{Event: raw}
	return d
}

// dataOf is a piece of a result on the wire.
func dataOf(p portable.Piece) *fleetv1.Data {
	switch {
	case p.Long:
		return &fleetv1.Data{What: &fleetv1.Data_Long{Long: &fleetv1.Long{Of: p.Of, Piece: p.Bytes}}}
	case p.Last:
		return &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: p.Bytes}}
	}
	return &fleetv1.Data{What: &fleetv1.Data_Result{Result: p.Bytes}}
}

// neverOf says why a call cannot be made here. Of one that the supervisor refuses, it has the
// result of that.
func neverOf(why fleetv1.Why, err error, p *supervisor.Prepared) *fleetv1.Never {
	n := &fleetv1.Never{Why: why, Detail: err.Error()}
	if p == nil {
		return n
	}
	if result := p.Start(context.Background(), supervisor.Own{}).Result(); why == fleetv1.Why_WHY_CANNOT {
		n.Result = portable.WriteRefusal(result)
	}
	return n
}

// begunOf describes a call that starts to its caller.
func (w *Worker) begunOf(p *supervisor.Prepared) *fleetv1.Started {
	return &fleetv1.Started{Ready: w.ready, GraceMs: p.Grace().Milliseconds(), TimeoutMs: budget.Milliseconds(p.Timeout().Timeout)}
}
