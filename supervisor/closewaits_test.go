package supervisor

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func TestCloseWaitsForGoroutines(t *testing.T) {
	s, err := New(t.Context(), Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	s.tasks.Run("late", func() {
		<-s.ready.stop.Done()
		s.tasks.Run("later", func() { ended.Store(true) })
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("a goroutine goes on")
	}
}

// A supervisor that is closed makes no call again, and says so; a call has the outcome of
// those that Close has aborted.
func TestAfterClose(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, doubted := range []bool{false, true} {
		s, err := New(t.Context(), Config{RuntimeDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if doubted {
			s.ready.next = time.Now().Add(time.Hour)
			s.doubt(errors.New("played"))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Ready(); !errors.Is(err, errClosed) {
			t.Errorf("ready: %v", err)
		}
		for _, one := range []Request{{Command: &Command{Argv: []string{self}}}, {Tool: Tool{Path: self}}} {
			r := s.Call(t.Context(), one)
			if r.Status != api.StatusCancelled || r.Reason != api.ReasonShutdown || r.Retry.SideEffects != "none" || strings.Contains(r.Message, "call again later") {
				t.Errorf("%s/%s: %s", r.Status, r.Reason, r.Message)
			}
		}
	}
}

// A New that is given up is told in one line from one that fails.
func TestNewIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("played")
	cancel(cause)
	s, err := New(ctx, Config{RuntimeDir: t.TempDir()})
	if err == nil {
		_ = s.Close()
		t.Fatal("no error")
	}
	if !errors.Is(err, cause) || err.Error() != "the supervisor was given up before it was ready: played" {
		t.Error(err)
	}
}
