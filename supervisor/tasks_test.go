package supervisor

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestCloseWaitsForGoroutines(t *testing.T) {
	s, err := New(t.Context(), Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	s.tasks.run("late", func() {
		<-s.ready.stop.Done()
		s.tasks.run("later", func() { ended.Store(true) })
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("a goroutine goes on")
	}
}

func TestTasks(t *testing.T) {
	var ts tasks
	if left := ts.wait(time.Hour); len(left) != 0 {
		t.Errorf("left %q", left)
	}
	stop := make(chan struct{})
	for _, name := range []string{"b", "a", "b"} {
		ts.run(name, func() { <-stop })
	}
	if left := ts.wait(0); !slices.Equal(left, []string{"a", "b"}) {
		t.Errorf("left %q", left)
	}
	close(stop)
	if left := ts.wait(time.Hour); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}
