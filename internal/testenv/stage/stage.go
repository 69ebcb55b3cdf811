// Package stage keeps tests that take long, or that need a browser or npm, out of `make test`: each has a target of its own.
package stage

import (
	"os"
	"testing"
)

// Var names the stage that is being run.
const Var = "TOOLHOST_TEST_STAGE"

// Runs says whether the stage's tests are wanted.
func Runs(name string) bool { return os.Getenv(Var) == name }

// Whole skips a test with -short, as in the race detector's stage of .ci/run: it computes for minutes there, or is about
// processes that the detector does not see. `make race` runs it.
func Whole(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: it says nothing new of goroutines, and takes long")
	}
}

// Of skips a test unless its stage is being run.
func Of(t testing.TB, name string) {
	t.Helper()
	if !Runs(name) {
		t.Skipf("one of `make %s`", name)
	}
}
