package budget

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func always(x float64) func() float64 { return func() float64 { return x } }

func failure(attempt int) Failure { return Failure{Attempt: attempt, Retryable: true} }

func TestRetryDefaults(t *testing.T) {
	var r Retry
	for attempt, want := range map[int]time.Duration{1: 200 * ms, 2: 400 * ms} {
		if wait, ok := r.Next(failure(attempt), always(0)); !ok || wait != want {
			t.Errorf("attempt %d: %s, %v, want %s", attempt, wait, ok, want)
		}
	}
	if _, ok := r.Next(failure(3), always(0)); ok {
		t.Error("a fourth attempt")
	}
}

func TestRetryOnlyWhereAdvised(t *testing.T) {
	budget := RetryBudget{Tokens: 1}
	r := Retry{Budget: &budget}
	if _, ok := r.Next(Failure{Attempt: 1}, always(0)); ok {
		t.Error("retried what may have had effects")
	}
	if !budget.Withdraw() {
		t.Error("a retry that was not made took a token")
	}
}

func TestRetryOff(t *testing.T) {
	if _, ok := (Retry{Attempts: 1}).Next(failure(1), always(0)); ok {
		t.Error("retried")
	}
}

func TestRetryBackoffIsBounded(t *testing.T) {
	for _, r := range []Retry{
		{},
		{Attempts: math.MaxInt, Multiplier: 1e300, Max: Infinite},
		{Attempts: math.MaxInt, Multiplier: math.NaN(), Jitter: math.NaN()},
		{Attempts: math.MaxInt, Multiplier: math.Inf(1), Jitter: math.Inf(1), Initial: Infinite, Max: Infinite},
		{Attempts: math.MaxInt, Multiplier: -3, Jitter: NoJitter, Initial: -1, Max: -1},
	} {
		longest := orDefault(r.Max, defaultMaxWait)
		for _, attempt := range []int{math.MinInt, 0, 1, 2, 10, 10_000, math.MaxInt - 1} {
			for _, x := range []float64{0, 0.5, 1, 7, -1, math.NaN(), math.Inf(1)} {
				wait, ok := r.Next(failure(attempt), always(x))
				if ok && (wait < 0 || wait > longest || wait == Infinite) {
					t.Errorf("%+v, attempt %d, random %v: %d", r, attempt, x, int64(wait))
				}
			}
		}
	}
}

func TestRetryJitter(t *testing.T) {
	for _, c := range []struct {
		jitter, random float64
		want           time.Duration
	}{
		{0, 0, sec},
		{0, 0.5, 750 * ms},
		{1, 0, sec},
		{1, 0.75, 250 * ms},
		{0.1, 0.5, 950 * ms},
		{NoJitter, 0.9, sec},
	} {
		r := Retry{Initial: sec, Jitter: c.jitter}
		if wait, _ := r.Next(failure(1), always(c.random)); wait != c.want {
			t.Errorf("jitter %v, random %v: %s, want %s", c.jitter, c.random, wait, c.want)
		}
	}
}

func TestRetryTotal(t *testing.T) {
	r := Retry{Initial: 2 * sec, Jitter: NoJitter, Total: 10 * sec}
	for elapsed, want := range map[time.Duration]bool{0: true, 8*sec - 1: true, 8 * sec: false, Infinite: false} {
		if _, ok := r.Next(Failure{Attempt: 1, Retryable: true, Elapsed: elapsed}, always(0)); ok != want {
			t.Errorf("after %s: %v, want %v", elapsed, ok, want)
		}
	}
}

func TestRetryTimeout(t *testing.T) {
	for _, c := range []struct {
		retry                  Retry
		timeout, elapsed, want time.Duration
	}{
		{Retry{}, 30 * sec, hour, 30 * sec},
		{Retry{AttemptTimeout: 5 * sec}, 30 * sec, 0, 5 * sec},
		{Retry{AttemptTimeout: time.Minute}, 30 * sec, 0, 30 * sec},
		{Retry{AttemptTimeout: 5 * sec, Total: 12 * sec}, 30 * sec, 10 * sec, 2 * sec},
		{Retry{Total: 12 * sec}, Infinite, 2 * sec, 10 * sec},
		{Retry{Total: 12 * sec}, 30 * sec, hour, 1},
	} {
		if got := c.retry.Timeout(c.timeout, c.elapsed); got != c.want {
			t.Errorf("%+v: timeout %s after %s, want %s", c.retry, got, c.elapsed, c.want)
		}
	}
}

func TestRetryBudget(t *testing.T) {
	b := RetryBudget{Ratio: 0.5, Tokens: 2}
	take := func(want bool) {
		t.Helper()
		if got := b.Withdraw(); got != want {
			t.Errorf("withdraw: %v, want %v", got, want)
		}
	}
	take(true)
	take(true)
	take(false)
	b.Deposit()
	take(false)
	b.Deposit()
	take(true)
	for range 100 {
		b.Deposit() // keeps no more than Tokens
	}
	take(true)
	take(true)
	take(false)
}

func TestRetryBudgetDefaults(t *testing.T) {
	var none *RetryBudget
	none.Deposit()
	if !none.Withdraw() {
		t.Error("a nil budget is spent")
	}
	var b RetryBudget
	count := 0
	for b.Withdraw() {
		count++
	}
	if count != defaultTokens {
		t.Errorf("%d retries at first, want %d", count, defaultTokens)
	}
}

func TestRetryBudgetIsShared(t *testing.T) {
	b := RetryBudget{Tokens: 50}
	var wg sync.WaitGroup
	granted := make([]bool, 80)
	for i := range granted {
		wg.Go(func() { granted[i] = b.Withdraw() })
	}
	wg.Wait()
	count := 0
	for _, ok := range granted {
		if ok {
			count++
		}
	}
	if count != 50 {
		t.Errorf("%d retries, want 50", count)
	}
}

// A result decides by its own advice, and calls share what they may try again.
func TestRetryAgain(t *testing.T) {
	r := Retry{Attempts: 100, Budget: &RetryBudget{Tokens: 2, Ratio: 0.5}}
	failed := &api.Result{Status: api.StatusOverloaded, Retry: api.Retry{Retryable: true}}
	for name, result := range map[string]*api.Result{
		"a success": {Status: api.StatusOK, Retry: api.Retry{Retryable: true}}, "side effects": {Status: api.StatusTimeout},
	} {
		if wait, ok := r.Again(1, result, 0); ok || wait != 0 {
			t.Errorf("%s is tried again", name)
		}
	}
	for attempt, want := range []bool{true, true, false, false} {
		if _, ok := r.Again(attempt+1, failed, 0); ok != want {
			t.Errorf("attempt %d is %t", attempt+1, ok)
		}
	}
	resting := &api.Result{Status: api.StatusStartFailed, Retry: api.Retry{Retryable: true, AfterMs: 9_000}}
	if wait, ok := (Retry{}).Again(1, resting, 0); !ok || wait != 9*time.Second {
		t.Errorf("what rests for 9s is tried again in %s, %t", wait, ok)
	}
	for name, short := range map[string]Retry{"waits": {Max: 8 * time.Second}, "time in all": {Total: 10 * time.Second}} {
		if _, ok := short.Again(1, resting, 2*time.Second); ok {
			t.Errorf("what rests for 9s is tried again with less for %s", name)
		}
	}
	r.Again(1, &api.Result{Status: api.StatusOK}, 0)
	if _, ok := r.Again(1, failed, 0); !ok { // two calls begun are worth one retry
		t.Error("calls that begin put nothing into the budget")
	}
}
