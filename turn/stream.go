package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

// ErrStreamOver is returned by Stream if the turn's streaming time is used up.
var ErrStreamOver = errors.New("the turn's time for the model to stream is used up: give it more with turn.streamDuration")

// Stream reports that the model streams, until end is called. Call it for each round
// trip, one at a time, and make the round trip with the context that it returns. The
// budget's StreamDuration bounds all round trips of the turn together; its clock stops
// while a batch runs or a human is waited for. When the time is used up the turn is
// aborted and the context ends with cause ErrStreamOver. From then on Stream returns
// that error.
func (t *Turn) Stream(ctx context.Context) (streaming context.Context, end func(), err error) {
	if err := t.Streaming(true); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.heard, func() { cancel(context.Cause(t.heard)) })
	return ctx, sync.OnceFunc(func() {
		stop()
		cancel(nil)
		_ = t.Streaming(false) // a turn that is over needs no telling
	}), nil
}

// Streaming is like Stream, for hosts that a context cannot stop: it reports that the
// model starts to stream, or has stopped. Repeated reports have no effect. It fails if
// the streaming time is used up, or the turn is over.
func (t *Turn) Streaming(on bool) error {
	err := errOver
	t.do(func() { err = t.stream(on) })
	return err
}

func (t *Turn) stream(on bool) error {
	now := t.now()
	if on && t.budget.StreamLeft(now) == 0 {
		return ErrStreamOver
	}
	t.budget.Streaming(now, on)
	t.armStream()
	return nil
}

// busy tells the budget whether a batch runs.
func (t *Turn) busy(on bool) {
	t.budget.Busy(t.now(), on)
	t.armStream()
}

// armStream resets the timer of the streaming time. Call it whenever its clock stops or
// starts.
func (t *Turn) armStream() {
	if t.streamTimer != nil {
		t.streamTimer.Stop()
		t.streamTimer = nil
	}
	if left, runs := t.budget.StreamRuns(t.now()); runs {
		t.streamTimer = time.AfterFunc(left, t.endStream)
	}
}

// endStream ends the model's time, if it is used up by now.
func (t *Turn) endStream() {
	over := false
	t.do(func() {
		now := t.now()
		if over = t.budget.StreamLeft(now) == 0; !over {
			t.armStream()
			return
		}
		t.budget.Streaming(now, false)
		t.unhear(ErrStreamOver)
	})
	if over {
		t.Abort(api.ReasonTimeout)
	}
}
