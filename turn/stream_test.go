package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// The model's time is what is neither that of tools nor of humans. When it is used
// up the turn is aborted, and no round trip begins any more.
func TestStreamDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		ctx, end, err := turn.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		end()
		end() // says nothing new
		time.Sleep(time.Hour)
		if ctx.Err() == nil || context.Cause(ctx) == ErrStreamOver {
			t.Errorf("after its round trip: %v", context.Cause(ctx))
		}

		ctx, end, err = turn.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		time.Sleep(15 * time.Second)
		run(t, turn, Call{ID: "a", Tool: "work", Arguments: []byte(`{"ms":20000,"queue":15000,"slow":10000}`)})
		go answer(t, turn, "b", api.Answer{Approve: true})
		run(t, turn, asking("b", "", nil))
		if r, err := turn.Raise(t.Context(), Question{Kind: api.KindEscalation, Prompt: "?"}); err != nil || r.Outcome != api.OutcomeTimedOut {
			t.Errorf("%+v, %v", r, err)
		}
		info, _ := turn.Info()
		if !info.Streaming || info.StreamMs != 35_000 || info.StreamLeftMs != 25_000 || ctx.Err() != nil {
			t.Errorf("streaming %v, %d ms, %d ms left, %v", info.Streaming, info.StreamMs, info.StreamLeftMs, context.Cause(ctx))
		}
		left := time.Now()
		<-ctx.Done()
		if took := time.Since(left); took != 25*time.Second || context.Cause(ctx) != ErrStreamOver || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("%s later: %v", took, context.Cause(ctx))
		}
		end()
		synctest.Wait()
		if _, _, err := turn.Stream(t.Context()); err != ErrStreamOver {
			t.Errorf("another round trip: %v", err)
		}
		results := run(t, turn, callOf("c", "work", 1))
		want(t, results, "cancelled/timeout")
		if info, _ := turn.Info(); info.Streaming || info.StreamMs != 60_000 || info.StreamLeftMs != 0 {
			t.Errorf("streaming %v, %d ms, %d ms left", info.Streaming, info.StreamMs, info.StreamLeftMs)
		}
		if time.Since(began) < time.Hour {
			t.Error("bug: the test takes no time")
		}
	})
}

// What a host says of streaming is a state, and ends with the turn.
func TestStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{StreamDuration: 10 * time.Second}})
		for _, on := range []bool{false, true, true, false, false} {
			if err := turn.Streaming(on); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if info, _ := turn.Info(); info.Streaming || info.StreamMs != 2000 || info.StreamLeftMs != 8000 {
			t.Errorf("streaming %v, %d ms, %d ms left", info.Streaming, info.StreamMs, info.StreamLeftMs)
		}
		done := make(chan []*api.Result, 1)
		go func() { done <- run(t, turn, callOf("a", "work", 20_000)) }() // longer than the model has
		synctest.Wait()
		if err := turn.Streaming(true); err != nil { // already, as some models do
			t.Fatal(err)
		}
		want(t, <-done, "ok")
		time.Sleep(7 * time.Second)
		if err := turn.Streaming(true); err != nil {
			t.Fatal(err)
		}
		turn.End()
		if err := turn.Streaming(true); err == nil || err == ErrStreamOver {
			t.Errorf("in a turn that is over: %v", err)
		}
		if _, _, err := turn.Stream(t.Context()); err == nil {
			t.Error("a turn that is over hears the model")
		}
	})
}
