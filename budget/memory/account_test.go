package memory_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget/memory"
)

const patience = 2 * time.Second

// later runs Take on a goroutine of its own.
func later(ctx context.Context, h *memory.Holder, bytes int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- h.Take(ctx, bytes) }()
	synctest.Wait()
	return done
}

func waits(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneKeyHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(800, patience)
		first, second, other := a.Hold("a", 0, nil), a.Hold("a", 0, nil), a.Hold("b", 0, nil)
		must(t, first.Take(t.Context(), 100))
		blocked := later(t.Context(), second, 1)
		waits(t, blocked)
		must(t, other.Take(t.Context(), 100)) // another key does not wait behind it
		first.Give(1)
		must(t, <-blocked)
		first.Release()
		first.Release()
		second.Release()
		other.Release()
		if a.Used() != 0 {
			t.Errorf("%d bytes are left", a.Used())
		}
	})
}

func TestWhoHoldsSomethingIsRefused(t *testing.T) {
	a := memory.New(800, patience)
	older, younger := a.Hold("a", 0, nil), a.Hold("a", 0, nil)
	must(t, older.Take(t.Context(), 60))
	must(t, younger.Take(t.Context(), 40))
	if err := younger.Take(t.Context(), 1); !errors.Is(err, memory.ErrFull) {
		t.Errorf("with its hands full: %v", err)
	}
	younger.Release()
	must(t, older.Take(t.Context(), 40))
}

func TestFirstBytesAreFree(t *testing.T) {
	a := memory.New(800, patience)
	full := a.Hold("a", 0, nil)
	must(t, full.Take(t.Context(), 100))
	small := a.Hold("a", 10, nil)
	for range 1000 {
		must(t, small.Take(t.Context(), 10))
		small.Give(10)
	}
	if a.Used() != 100 {
		t.Errorf("%d bytes are counted", a.Used())
	}
}

func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(80, patience)
		var holders []*memory.Holder
		for i := range 8 {
			h := a.Hold(string(rune('a'+i)), 0, nil)
			must(t, h.Take(t.Context(), 10))
			holders = append(holders, h)
		}
		large, small := later(t.Context(), a.Hold("x", 0, nil), 10), later(t.Context(), a.Hold("y", 0, nil), 1)
		holders[0].Give(5) // too little for the first, and the second is behind it
		synctest.Wait()
		waits(t, small)
		holders[1].Give(10)
		must(t, <-large)
		must(t, <-small)
	})
}

func TestTheSlowLoseTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(800, patience)
		var lost atomic.Bool
		var slow *memory.Holder
		slow = a.Hold("a", 0, func() { lost.Store(true); slow.Release() })
		must(t, slow.Take(t.Context(), 100))
		time.Sleep(time.Hour) // nobody waits
		if lost.Load() {
			t.Fatal("lost without need")
		}
		began := time.Now()
		must(t, a.Hold("a", 0, nil).Take(t.Context(), 100))
		if !lost.Load() || time.Since(began) > 2*patience {
			t.Errorf("lost %v after %s", lost.Load(), time.Since(began))
		}
		if err := slow.Take(t.Context(), 1); !errors.Is(err, memory.ErrLost) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestWhatIsReservedAndNotUsedIsGivenToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(800, patience)
		idle := a.Hold("a", 0, nil)
		must(t, idle.Reserve(t.Context(), 100))
		must(t, idle.Take(t.Context(), 10))
		began := time.Now()
		busy := a.Hold("a", 0, nil)
		must(t, busy.Reserve(t.Context(), 90))
		if waited := time.Since(began); waited == 0 || waited >= patience {
			t.Errorf("it waited for %s", waited)
		}
		must(t, busy.Take(t.Context(), 90))
		busy.Release()
		must(t, idle.Take(t.Context(), 90)) // there is room again
		idle.Release()
		if a.Used() != 0 {
			t.Errorf("%d bytes are left", a.Used())
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(800, time.Hour)
		full := a.Hold("a", 0, nil)
		must(t, full.Take(t.Context(), 100))
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if err := a.Hold("a", 0, nil).Take(ctx, 1); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		gone := a.Hold("a", 0, nil)
		blocked := later(t.Context(), gone, 1)
		gone.Release()
		if err := <-blocked; !errors.Is(err, memory.ErrLost) {
			t.Errorf("released while it waits: %v", err)
		}
		if err := a.Hold("b", 0, nil).Take(t.Context(), 101); !errors.Is(err, memory.ErrFull) {
			t.Errorf("more than there can be: %v", err)
		}
		for range 1024 {
			later(ctx, a.Hold("b", 0, nil), 1)
		}
		full.Release()
		synctest.Wait()
	})
}

// Whatever happens in whatever order, no more is in use than there is, and in the
// end nothing.
func TestDisorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(8000, 50*time.Millisecond)
		var all sync.WaitGroup
		var inUse atomic.Int64
		for i := range 60 {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			all.Go(func() {
				for range 100 {
					var h *memory.Holder
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Millisecond)
					h = a.Hold(string(rune('a'+random.IntN(12))), 0, nil)
					mine := int64(0)
					if random.IntN(2) == 0 {
						_ = h.Reserve(ctx, random.Int64N(1200))
					}
					for range random.IntN(5) {
						n := random.Int64N(400)
						if h.Take(ctx, n) != nil {
							break
						}
						mine += n
						if now := inUse.Add(n); now > 8000 {
							t.Errorf("%d bytes are in use", now)
						}
						time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
						if random.IntN(3) == 0 && mine > 10 {
							inUse.Add(-10)
							h.Give(10)
							mine -= 10
						}
					}
					inUse.Add(-mine)
					h.Release()
					cancel()
				}
			})
		}
		all.Wait()
		if a.Used() != 0 {
			t.Errorf("%d bytes are left", a.Used())
		}
	})
}
