package kept

import (
	"math"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// A guest that leaves while another has only just come must not have the
// launcher end the tree.
func TestTimerOfGuests(t *testing.T) {
	now := time.Now()
	idle := time.Minute + budget.AnswerMargin
	for name, test := range map[string]struct {
		here []time.Time
		want time.Duration
	}{
		"nobody":              {nil, idle},
		"one":                 {[]time.Time{now.Add(time.Hour)}, time.Hour},
		"the latest":          {[]time.Time{now.Add(time.Second), now.Add(time.Hour)}, time.Hour},
		"just come":           {[]time.Time{{}}, idle},
		"just come, and long": {[]time.Time{{}, now.Add(time.Hour)}, time.Hour},
		"over":                {[]time.Time{now.Add(-time.Second)}, 0},
	} {
		l, s := &Line{keep: spec.Keep{Idle: time.Minute}}, &stay{here: map[*Guest]time.Time{}}
		for _, at := range test.here {
			s.here[new(Guest)] = at
		}
		if got := l.needs(s, now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The longest of all times is one, and no overflow.
func TestTimerOfEver(t *testing.T) {
	l := (&Pool{}).newLine("", Key{}, spec.Keep{Idle: math.MaxInt64})
	if got := l.needs(&stay{}, time.Now()); got < process.Forever {
		t.Errorf("the timer runs for %s", got)
	}
}
