package bench

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// What a benchmark fails above: far above what is promised, as machines differ
// and are busy.
const (
	freshRatio      = 2.0                   // promised: 1.4
	warmRatio       = 1.8                   // promised: 1.3
	prestartedRatio = 0.8                   // promised: 0.4
	termLateP50     = 2 * time.Millisecond  // promised: 0.5 ms
	termLateP99     = 30 * time.Millisecond // promised: 3 ms
	goneToAnswer    = 60 * time.Millisecond // promised: 20 ms
)

// fewestIterations is how many make a figure: what runs less often never fails.
const fewestIterations = 100

// atMost fails a benchmark whose figure is above its limit.
func atMost[T float64 | time.Duration](b *testing.B, iterations int, what string, got, limit T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		return // an emulated processor
	}
	if err := check(iterations, what, got, limit); err != nil {
		b.Error(err)
	}
}

func check[T float64 | time.Duration](iterations int, what string, got, limit T) error {
	if iterations < fewestIterations || got <= limit {
		return nil
	}
	return fmt.Errorf("%s is %v, more than %v: run it again on an idle machine, or find what has become slow", what, got, limit)
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		iterations int
		got        float64
		fails      bool
	}{{99, 3, false}, {100, 2, false}, {100, 2.01, true}} {
		if err := check(test.iterations, "ratio", test.got, 2); (err != nil) != test.fails {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if err := check(100, "p50", 3*time.Millisecond, termLateP50); err == nil {
		t.Error("3 ms are not more than 2")
	} else {
		t.Log(err)
	}
}
