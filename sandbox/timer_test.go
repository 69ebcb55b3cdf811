package sandbox

import (
	"errors"
	"testing"
	"time"
)

// A launcher that ends has closed its socket before its end can be seen: what cannot be
// told it is no failure.
func TestTheTimerOfALauncherThatEnds(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	for range 20 {
		c := w.start(p, "echo", nil, nil)
		c.line()
		c.Kill()
		err := c.SetTimer(time.Hour)
		for err == nil {
			err = c.SetTimer(time.Hour)
		}
		if !errors.Is(err, ErrGone) {
			t.Error(err)
		}
		c.waitGone()
	}
}
