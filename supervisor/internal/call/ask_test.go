package call

import (
	"math"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// An interaction refuses times that are negative, or that do not end.
func TestWishesForAnswers(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 5000: 5 * time.Second, math.MaxInt64: budget.Infinite - 1,
	} {
		if got := wished(ms); got != want {
			t.Errorf("%d ms: %v, want %v", ms, got, want)
		}
	}
}
