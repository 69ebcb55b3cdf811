package pace

import (
	"runtime"
	"testing"
	"time"
)

// Output is taken as it comes where few calls run; among many each reader comes
// down to its share, and what it saved up is a burst at most.
func TestPace(t *testing.T) {
	cpus := runtime.GOMAXPROCS(0)
	calls := manyPerCPU * cpus
	p := Pace{Load: func() (int, int) { return calls, 0 }}
	now := time.Now()
	taken := func(lasts time.Duration) (pieces int) {
		for end := now.Add(lasts); now.Before(end); pieces++ {
			nap := p.owe(now, time.Millisecond)
			if nap != 0 && (nap < minNap || nap > maxNap) {
				t.Fatalf("a nap of %s", nap)
			}
			now = now.Add(time.Millisecond + nap)
		}
		return pieces
	}
	if n := taken(10 * time.Second); n != 10_000 {
		t.Errorf("%d ms of 10 s taken where few calls run", n)
	}
	calls = 100 * cpus
	burst, share := int(paceBurst/time.Millisecond), int(10_000*outputShare/100)
	if n := taken(10 * time.Second); n < share || n > burst+3*share+500 {
		t.Errorf("%d ms of 10 s taken, want about %d and %d", n, burst, share)
	}
	now = now.Add(time.Hour)
	for range burst - 1 {
		if nap := p.owe(now, time.Millisecond); nap > 0 {
			t.Fatalf("no burst after a pause: %s", nap)
		}
	}
}
