package admission

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 1, Queue: 3, Wait: time.Hour})
		release, err := g.Acquire(t.Context(), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				release, err := g.Acquire(t.Context(), Ask{})
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				release()
			}()
			synctest.Wait()
		}
		if _, err := g.Acquire(t.Context(), Ask{}); !isOverloaded(err) {
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
		release, _ := g.Acquire(t.Context(), Ask{})
		began := time.Now()
		if _, err := g.Acquire(t.Context(), Ask{}); !isOverloaded(err) || time.Since(began) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := g.Acquire(ctx, Ask{}); !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
		release()
		if release, err := g.Acquire(t.Context(), Ask{}); err != nil {
			t.Error(err)
		} else {
			release()
		}
	})
}

// Calls that want all slots have them to themselves and are not starved by
// those that want one.
func TestGateWithSeveralSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 3, Queue: 9, Wait: time.Hour})
		small, _ := g.Acquire(t.Context(), Ask{})
		var mu sync.Mutex
		var order []string
		admitted := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(order, " ")
		}
		want := func(name string, slots int) {
			go func() {
				release, err := g.Acquire(t.Context(), Ask{Slots: slots})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				release()
			}()
			synctest.Wait()
		}
		want("all", 99)  // as many as there are
		want("small", 1) // there is room, but not before its turn
		if got := admitted(); got != "" {
			t.Errorf("%s before their turn", got)
		}
		small()
		synctest.Wait()
		if got := admitted(); got != "all" {
			t.Errorf("admitted %q, want the large one alone", got)
		}
		time.Sleep(3 * time.Second)
		if got := admitted(); got != "all small" {
			t.Errorf("admitted %q", got)
		}
		if running, waiting := g.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d running, %d waiting", running, waiting)
		}
	})
}

// Who gives up at the head of the queue lets those behind in.
func TestGateLeavingLetsOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 2, Queue: 9, Wait: time.Hour})
		_, _ = g.Acquire(t.Context(), Ask{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = g.Acquire(ctx, Ask{Slots: 2}) }()
		synctest.Wait()
		admitted := false
		go func() {
			_, err := g.Acquire(t.Context(), Ask{})
			admitted = err == nil
		}()
		synctest.Wait()
		if admitted {
			t.Error("overtaken")
		}
		cancel()
		synctest.Wait()
		if !admitted {
			t.Error("not let in")
		}
	})
}

// Who does not wait has a slot that is free, and takes neither a place nor another's turn.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 1, Queue: 1, Wait: time.Hour})
		release, ok := g.Try(Ask{})
		if !ok {
			t.Fatal("a free slot is not to be had")
		}
		waited := make(chan error, 1)
		go func() {
			_, err := g.Acquire(t.Context(), Ask{})
			waited <- err
		}()
		synctest.Wait()
		if _, ok := g.Try(Ask{}); ok {
			t.Error("a slot that is taken is had twice")
		}
		if running, waiting := g.Load(); running != 1 || waiting != 1 {
			t.Errorf("%d run and %d wait", running, waiting)
		}
		release()
		if err := <-waited; err != nil {
			t.Errorf("who waited: %v", err)
		}
	})
}
