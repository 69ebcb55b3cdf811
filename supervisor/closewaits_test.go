package supervisor

import (
	"sync/atomic"
	"testing"
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
