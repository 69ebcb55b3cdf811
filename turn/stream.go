package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

// ErrStreamOver is why the model is heard no longer in a turn.
var ErrStreamOver = errors.New("the turn's time for the model to stream is used up: give it more with turn.streamDuration")

// Stream tells that the model streams: one round trip, until end is called, and one
// at a time. Its time in the turn is bounded by the budget's StreamDuration, all
// round trips together. The clock stands still while a batch is under way and while
// a human is waited for. When the time is used up the turn is aborted, and ctx,
// which the round trip is to be made with, ends by the cause ErrStreamOver; from
// then on Stream gives that error at once.
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

// Streaming is Stream for hosts that cannot be stopped by a context: it tells that
// the model begins to stream, or has ended. Saying it again changes nothing. An error
// says that its time is used up, or that the turn is over.
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

// busy tells the budget that a batch is under way, or no longer.
func (t *Turn) busy(on bool) {
	t.budget.Busy(t.now(), on)
	t.armStream()
}

// armStream sets the timer of the model's time anew: what stops its clock moves it.
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
