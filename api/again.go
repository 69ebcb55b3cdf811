package api

import (
	"context"
	"slices"
	"time"
)

// Again decides whether to repeat a call, and how long to wait first. It is called
// once for each result: attempt counts the calls made so far, elapsed is the time
// since the first began. The method Again of budget.Retry implements it.
type Again func(attempt int, r *Result, elapsed time.Duration) (wait time.Duration, ok bool)

// RunAgain makes a batch of calls by run, and repeats the calls that again selects:
// all of them at once, after the longest of their waits, until it selects none. It
// returns the last result of each call, in call order; of a call that may have had effects
// and then could not be made again, the one that says so. If ctx ends during a wait, or
// a later run fails, it returns the results so far. The error is the first run's.
//
// Only calls whose result is retryable should be repeated: others may have had
// effects, or would end the same way.
func RunAgain[C any](ctx context.Context, calls []C, again Again, run func(ctx context.Context, attempt int, calls []C) ([]*Result, error)) ([]*Result, error) {
	began := time.Now()
	results, err := run(ctx, 1, calls)
	if err != nil {
		return nil, err
	}
	last := slices.Clone(results)
	places := make([]int, len(results)) // of the calls made last
	for i := range places {
		places[i] = i
	}
	for attempt := 1; ; attempt++ {
		var wait time.Duration
		var failed []int
		for _, place := range places {
			if each, ok := again(attempt, last[place], time.Since(began)); ok {
				failed, wait = append(failed, place), max(wait, each)
			}
		}
		if len(failed) == 0 || !pause(ctx, wait) {
			return results, nil
		}
		next := make([]C, len(failed))
		for i, place := range failed {
			next[i] = calls[place]
		}
		latest, err := run(ctx, attempt+1, next)
		if err != nil || len(latest) != len(failed) {
			return results, nil
		}
		for i, place := range failed {
			if last[place] = latest[i]; latest[i].tellsAfter(results[place]) {
				results[place] = latest[i]
			}
		}
		places = failed
	}
}

// tellsAfter reports whether a result is true of a call with an earlier one, too: that the
// last attempt has changed nothing is not, where the one before may have.
func (r *Result) tellsAfter(earlier *Result) bool {
	return r.OK() || r.Retry.SideEffects != "none" || earlier.Retry.SideEffects == "none"
}

// pause reports whether it has waited in full, before ctx ended.
func pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
