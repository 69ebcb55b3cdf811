package process

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Starts wait for one another: the one with the greatest weight is first, then
// the oldest, and one that hangs holds up nobody for long.
func TestStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Starts{admission.New(admission.Limits{Running: 1, Queue: 10, Wait: Forever})}
		first, err := s.begin(t.Context(), spec.Pool{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		later := func(name string, weight int64) {
			go func() {
				over, err := s.begin(t.Context(), spec.Pool{}, weight)
				if err != nil {
					t.Error(err)
				}
				order = append(order, name)
				over()
				over()
			}()
			synctest.Wait()
		}
		later("light", 1)
		later("plain", 0)
		later("plain, too", 100)
		later("heavy", 500)
		why := errors.New("no longer wanted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := s.begin(ctx, spec.Pool{}, 1000); err != why {
			t.Errorf("%v, want %v", err, why)
		}
		first()
		synctest.Wait()
		want := []string{"heavy", "plain", "plain, too", "light"}
		for i := range want {
			if i >= len(order) || order[i] != want[i] {
				t.Fatalf("order %q, want %q", order, want)
			}
		}
		hung, _ := s.begin(t.Context(), spec.Pool{}, 0)
		time.Sleep(startTurn) // of the bubble's clock
		synctest.Wait()
		if taken, _ := s.gate.Load(); taken != 0 {
			t.Error("a start that hangs keeps its turn")
		}
		hung()
		if taken, waiting := s.gate.Load(); taken != 0 || waiting != 0 {
			t.Errorf("%d turns are taken, %d wait", taken, waiting)
		}
	})
}

// Starts of a pool leave turns to others, however many there are.
func TestStartsOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, most := NewStarts(), max(1, pace.CPUs/poolPerCPUs)
		pool := spec.Pool{Name: "heavy", Running: 99}
		for range most {
			if _, err := s.begin(t.Context(), pool, 0); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		for _, other := range []spec.Pool{{}, {Name: "light", Running: 1}} {
			over, err := s.begin(t.Context(), other, 0)
			if err != nil || time.Since(began) > 0 {
				t.Errorf("a start of %+v came after %s: %v", other, time.Since(began), err)
			}
			defer over()
		}
		if over, err := s.begin(t.Context(), pool, 0); err != nil || time.Since(began) != startTurn {
			t.Errorf("a start more came after %s: %v", time.Since(began), err)
		} else {
			over()
		}
	})
}
