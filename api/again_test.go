package api

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// flaky makes calls that succeed once they have been made so often.
type flaky struct {
	need map[string]int
	made map[string]int
	runs [][]string
	fail error // of the second run
}

func (f *flaky) run(_ context.Context, attempt int, calls []string) ([]*Result, error) {
	if f.runs = append(f.runs, slices.Clone(calls)); attempt != len(f.runs) {
		return nil, errors.New("the attempts are not counted")
	}
	if f.fail != nil && attempt == 2 {
		return nil, f.fail
	}
	var results []*Result
	for _, call := range calls {
		r := &Result{CallID: call, Status: StatusToolError, Retry: Retry{Retryable: call != "firm"}}
		if f.made[call]++; f.made[call] >= f.need[call] {
			r.Status = StatusOK
		}
		results = append(results, r)
	}
	return results, nil
}

// threeTimes is what a host's policy may say.
func threeTimes(attempt int, r *Result, _ time.Duration) (time.Duration, bool) {
	return time.Duration(attempt) * time.Second, attempt < 3 && !r.OK() && r.Retry.Retryable
}

func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{need: map[string]int{"a": 2, "good": 1, "firm": 2, "never": 9, "c": 3}, made: map[string]int{}}
		calls, began := []string{"a", "good", "firm", "never", "c"}, time.Now()
		results, err := RunAgain(t.Context(), calls, threeTimes, f.run)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range results {
			got = append(got, r.CallID+" "+string(r.Status))
		}
		if want := []string{"a ok", "good ok", "firm tool_error", "never tool_error", "c ok"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if len(f.runs) != 3 || !slices.Equal(f.runs[1], []string{"a", "never", "c"}) || !slices.Equal(f.runs[2], []string{"never", "c"}) || time.Since(began) != 3*time.Second {
			t.Errorf("runs %q in %s", f.runs, time.Since(began))
		}
	})
}

// One result for each call, whatever keeps the calls from being made again.
func TestRunAgainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{need: map[string]int{"a": 2}, made: map[string]int{}, fail: errors.New("gone")}
		results, err := RunAgain(t.Context(), []string{"a"}, threeTimes, f.run)
		if err != nil || len(results) != 1 || results[0].Status != StatusToolError || len(f.runs) != 2 {
			t.Errorf("a later run that fails: %v, %v", results, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		f = &flaky{need: map[string]int{"a": 2}, made: map[string]int{}}
		results, err = RunAgain(ctx, []string{"a"}, threeTimes, f.run)
		if err != nil || len(results) != 1 || len(f.runs) != 1 {
			t.Errorf("an end of the wait: %v, %v", results, err)
		}
		_, err = RunAgain(t.Context(), []string{"a"}, threeTimes, func(context.Context, int, []string) ([]*Result, error) { return nil, errors.New("gone") })
		if err == nil {
			t.Error("the first run's error is lost")
		}
	})
}

// A call that may have had effects is not told to have changed nothing because its next
// attempt was refused.
func TestRunAgainTellsOfEffects(t *testing.T) {
	crashed := &Result{Status: StatusCrashed, Retry: Retry{Retryable: true, SideEffects: "possible"}}
	busy := &Result{Status: StatusOverloaded, Retry: Retry{Retryable: true, SideEffects: "none"}}
	denied := &Result{Status: StatusDenied, Retry: Retry{SideEffects: "none"}}
	done := &Result{Status: StatusOK, Retry: Retry{SideEffects: "possible"}}
	for name, c := range map[string]struct{ attempts, want []*Result }{
		"refused":       {[]*Result{crashed, denied}, []*Result{crashed}},
		"done after it": {[]*Result{crashed, busy, done}, []*Result{done}},
		"never begun":   {[]*Result{busy, denied}, []*Result{denied}},
	} {
		synctest.Test(t, func(t *testing.T) {
			made := 0
			got, err := RunAgain(t.Context(), []string{"a"}, threeTimes, func(_ context.Context, attempt int, _ []string) ([]*Result, error) {
				made = attempt
				return []*Result{c.attempts[attempt-1]}, nil
			})
			if err != nil || !slices.Equal(got, c.want) || made != len(c.attempts) {
				t.Errorf("%s: %s after %d attempts, %v", name, got[0].Status, made, err)
			}
		})
	}
}
