package kept

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget"
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

// A launcher is told of an earlier time at once, and of a later one before its own comes,
// however many calls there are in between.
func TestALauncherIsToldWhenItMustBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := (&Pool{}).newLine("", spec.Keep{Idle: 5 * time.Minute})
		var over sync.WaitGroup
		over.Go(l.run)
		began := time.Now()
		var told []time.Duration // when, and until when
		s := &stay{here: map[*Guest]time.Time{}, kept: true, tell: func(left time.Duration) error {
			at := time.Since(began)
			told = append(told, at, at+left)
			return nil
		}}
		l.ask(func() { l.current = s })
		call := func(timeout time.Duration) {
			g := &Guest{line: l, stay: s}
			if err := g.SetTimer(timeout); err != nil {
				t.Error(err)
			}
			l.ask(func() {
				delete(s.here, g)
				_ = l.rearm(s)
			})
		}
		call(33 * time.Second)
		for range 12 {
			time.Sleep(time.Second)
			call(33 * time.Second)
		}
		time.Sleep(30 * time.Second)
		call(8 * time.Second)
		synctest.Wait()
		idle := 5*time.Minute + budget.AnswerMargin
		want := []time.Duration{0, 33 * time.Second, 23 * time.Second, 23*time.Second + idle, 42 * time.Second, 50 * time.Second, 42 * time.Second, 42*time.Second + idle}
		if !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		close(l.stop)
		over.Wait()
	})
}
