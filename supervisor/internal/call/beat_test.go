package call

import (
	"testing"
	"time"
)

// The beats of calls that have begun at any time come together, and in five seconds
// at the earliest.
func TestBeatsComeTogether(t *testing.T) {
	zero := time.Unix(1_700_000_000, 0)
	for _, c := range []struct{ begun, next time.Duration }{
		{0, 5 * time.Second},
		{1, 5250 * time.Millisecond},
		{249 * time.Millisecond, 5250 * time.Millisecond},
		{250 * time.Millisecond, 5250 * time.Millisecond},
		{251 * time.Millisecond, 5500 * time.Millisecond},
	} {
		if got := nextBeat(zero.Add(c.begun)).Sub(zero); got != c.next {
			t.Errorf("begun at %s: %s, want %s", c.begun, got, c.next)
		}
	}
}

// An alarm that need not be exact takes no thread to sleep on.
func TestLooseAlarmsDoNotSleep(t *testing.T) {
	slept := make(chan struct{}, 1)
	a := newAlarm(func(time.Time) { slept <- struct{}{} })
	a.set(time.Now().Add(time.Millisecond), false)
	<-a.fired
	a.rang()
	a.wait()
	if len(slept) != 0 {
		t.Error("a loose alarm slept")
	}
	a.set(time.Now().Add(time.Millisecond), true)
	<-a.fired
	a.stop()
	a.wait()
	if len(slept) != 1 {
		t.Error("an exact alarm did not")
	}
}
