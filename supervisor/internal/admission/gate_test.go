package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 1, Queue: 3, Wait: time.Hour})
		release, err := g.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				release, err := g.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				release()
			}()
			synctest.Wait()
		}
		if _, err := g.Acquire(t.Context()); !isOverloaded(err) {
			t.Errorf("a fifth call: %v", err)
		}
		release()
		synctest.Wait()
		for i := range 3 {
			if got := <-order; got != i {
				t.Errorf("admitted %d, want %d", got, i)
			}
		}
		if running, waiting := g.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d running, %d waiting", running, waiting)
		}
	})
}

func isOverloaded(err error) bool {
	var overloaded *OverloadedError
	return errors.As(err, &overloaded)
}

func TestGateWaitsOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 1, Queue: 1, Wait: 10 * time.Second})
		release, _ := g.Acquire(t.Context())
		began := time.Now()
		if _, err := g.Acquire(t.Context()); !isOverloaded(err) || time.Since(began) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := g.Acquire(ctx); !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
		release()
		if release, err := g.Acquire(t.Context()); err != nil {
			t.Error(err)
		} else {
			release()
		}
	})
}
