// Package wait bounds the waits of tests that use real processes: nothing is
// timed, but nothing hangs for ever either.
package wait

import (
	"context"
	"testing"
	"time"
)

// Bound is far beyond what anything takes, also in an emulated VM.
const Bound = 10 * time.Minute

// Context ends with the test, or after Bound.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Bound)
	t.Cleanup(cancel)
	return ctx
}

// Forever blocks a process that a test plays until it is killed. Without cgo
// the runtime takes select{} in a program's last goroutine for a deadlock.
func Forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// maxPause is between two looks at what is slow to come: a look at all
// processes, say, costs more than a millisecond.
const maxPause = 16 * time.Millisecond

// Until waits for a condition of the kernel's that nothing announces.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ctx := Context(t)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, maxPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
