package sandbox

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary play the tools: see roles_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		syscall.Exit(play(role, os.Args[1:])) // not os.Exit: the race detector's takes a second
	}
	goleak.VerifyTestMain(m)
}

// hangBound is far beyond what anything here takes, also in an emulated VM.
const hangBound = 2 * time.Minute

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangBound)
	t.Cleanup(cancel)
	return ctx
}

// until waits for a condition of the kernel's that nothing tells of.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx := bounded(t)
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustWrite(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// wantError wants an error with all these parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}
