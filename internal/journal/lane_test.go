package journal

import (
	"testing"
	"testing/synctest"
	"time"
)

// Large requests rest beside what other turns say, and only then.
func TestLargeRequestsRestBesideOthers(t *testing.T) {
	t.Parallel()
	of := func(turn string, events int) *request {
		r := &request{events: make([]Event, events)}
		r.events[0].TurnID = turn
		return r
	}
	const took = 10 * time.Millisecond
	for name, c := range map[string]struct {
		small string        // whose small request comes meanwhile
		ago   time.Duration // how long before the large one ends
		rest  time.Duration
	}{
		"another turn's": {"other", 0, restFactor * took},
		"its own":        {"large", 0, 0},
		"long ago":       {"other", restFor, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLane()
				l.note(of(c.small, 1))
				time.Sleep(c.ago)
				end := l.begin(of("large", maxSmall+1))
				time.Sleep(took)
				end()
				ended := time.Now()
				l.begin(of("large", maxSmall+1))()
				if rest := time.Since(ended); rest != c.rest {
					t.Errorf("it rests %s, want %s", rest, c.rest)
				}
			})
		})
	}
}
