package tasks

import (
	"slices"
	"testing"
	"time"
)

func TestTasks(t *testing.T) {
	var ts Tasks
	if left := ts.Wait(time.Hour); len(left) != 0 {
		t.Errorf("left %q", left)
	}
	stop := make(chan struct{})
	for _, name := range []string{"b", "a", "b"} {
		ts.Run(name, func() { <-stop })
	}
	if left := ts.Wait(0); !slices.Equal(left, []string{"a", "b"}) {
		t.Errorf("left %q", left)
	}
	close(stop)
	if left := ts.Wait(time.Hour); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}
