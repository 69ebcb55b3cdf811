package main

import (
	"errors"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

type fullWriter struct{ err error }

func (w fullWriter) Write([]byte) (int, error) { return 0, w.err }

// What cannot be written is told once, however much there was to write.
func TestPsTellsOneError(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	list := api.Turns{Prestarted: []api.Prestarted{{Tool: "t", Waiting: 1, Wanted: 1}}}
	if err := printRunning(fullWriter{full}, list, time.Now()); err != full {
		t.Errorf("%q, want %q", err, full)
	}
}
