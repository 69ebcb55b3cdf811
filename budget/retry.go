package budget

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Retry is a retry policy: exponential backoff with jitter, within limits. The zero
// Retry is usable. It is plain data and may be shared.
type Retry struct {
	// Attempts is the greatest number of calls, including the first; default 3. 1 turns
	// retrying off.
	Attempts int
	// Initial is the wait before the second attempt, before jitter; default 200ms.
	Initial time.Duration
	// Max bounds each wait; default 10s.
	Max time.Duration
	// Multiplier is the ratio of each wait to the one before; default 2, also for values
	// under 1.
	Multiplier float64
	// Jitter is the share of each wait that is random, from 0 to 1, so that hosts
	// which failed together do not retry together; default 0.5. [NoJitter] turns it off.
	Jitter float64
	// AttemptTimeout bounds the timeout of each attempt; 0 means no bound.
	AttemptTimeout time.Duration
	// Total bounds all attempts and waits together; 0 means no bound.
	Total time.Duration
	// Budget, if not nil, is shared by calls that together should not overload a host.
	Budget *RetryBudget
}

// NoJitter, as a [Retry.Jitter], turns jitter off; 0 means the default.
const NoJitter = -1.0

const (
	defaultAttempts   = 3
	defaultInitial    = 200 * time.Millisecond
	defaultMaxWait    = 10 * time.Second
	defaultMultiplier = 2.0
	defaultJitter     = 0.5
)

// Failure is what [Retry.Next] needs to know about a failed call.
type Failure struct {
	// Attempt counts the calls made so far: 1 after the first.
	Attempt int
	// Retryable is that of the call's result. If it is false there is no retry, since
	// the tool may have had effects.
	Retryable bool
	// Elapsed is the time since the first attempt began.
	Elapsed time.Duration
}

// Next returns the wait before another attempt; ok is false if there should be none.
// random returns numbers in [0, 1), like math/rand/v2.Float64. If Budget is set and ok
// is true, Next has taken a token from it.
func (r Retry) Next(f Failure, random func() float64) (wait time.Duration, ok bool) {
	if !f.Retryable || f.Attempt >= orDefault(r.Attempts, defaultAttempts) {
		return 0, false
	}
	wait = r.jittered(r.backoff(f.Attempt), random)
	if r.Total > 0 && add(max(f.Elapsed, 0), wait) >= r.Total {
		return 0, false
	}
	return wait, r.Budget.Withdraw()
}

// Again is [Retry.Next] for a result; it is an [api.Again]. Only a retryable result is
// retried, and not before its AfterMs; if that exceeds Max there is no retry. The first
// result of a call, even a success, makes a deposit in Budget.
func (r Retry) Again(attempt int, result *api.Result, elapsed time.Duration) (wait time.Duration, ok bool) {
	if attempt <= 1 {
		r.Budget.Deposit()
	}
	after := time.Duration(result.Retry.AfterMs) * time.Millisecond
	if after > orDefault(r.Max, defaultMaxWait) || r.Total > 0 && add(max(elapsed, 0), max(after, 0)) >= r.Total {
		return 0, false
	}
	wait, ok = r.Next(Failure{Attempt: attempt, Retryable: !result.OK() && result.Retry.Retryable, Elapsed: elapsed}, rand.Float64)
	return max(wait, after), ok
}

// Timeout returns the timeout of the next attempt: the least of timeout, which is the
// call's, AttemptTimeout, and the rest of Total. elapsed is the time since the first
// attempt began. The result is always positive.
func (r Retry) Timeout(timeout, elapsed time.Duration) time.Duration {
	if r.AttemptTimeout > 0 {
		timeout = min(timeout, r.AttemptTimeout)
	}
	if r.Total > 0 {
		timeout = min(timeout, r.Total-max(elapsed, 0))
	}
	return max(timeout, 1)
}

// backoff is the wait after the given attempt, before jitter. Floating point keeps
// it from overflowing: the result is capped at Max.
func (r Retry) backoff(attempt int) time.Duration {
	multiplier := r.Multiplier
	if !(multiplier >= 1) { // also NaN
		multiplier = defaultMultiplier
	}
	longest := float64(orDefault(r.Max, defaultMaxWait))
	wait := float64(orDefault(r.Initial, defaultInitial)) * math.Pow(multiplier, float64(max(attempt, 1)-1))
	return saturated(min(wait, longest))
}

func (r Retry) jittered(wait time.Duration, random func() float64) time.Duration {
	share := r.Jitter
	switch {
	case share == 0 || math.IsNaN(share):
		share = defaultJitter
	case share < 0:
		return wait
	}
	part := unit(random())
	return saturated(float64(wait) * (1 - unit(share)*part))
}

// unit clamps x to the range from 0 to 1; NaN becomes 0.
func unit(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// saturated converts without overflow, and never returns the marker Infinite.
func saturated(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return Infinite - 1
	}
	return time.Duration(ns)
}

func orDefault[T int | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}
