// Package wait bounds the waits of tests that use real processes: nothing is
// timed, but nothing hangs for ever either.
package wait

import (
	"context"
	"testing"
	"time"
)

// Bound is far beyond what anything takes, also in an emulated VM.
const Bound = 2 * time.Minute

// Context ends with the test, or after Bound.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Bound)
	t.Cleanup(cancel)
	return ctx
}

// Until waits for a condition of the kernel's that nothing tells of.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx := Context(t)
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
