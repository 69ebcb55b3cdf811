package relay

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// The host knows when the last connection has given up. A yes that comes then is the next
// one's, and without it the next one asks anew.
func TestAQuestionThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &told{}
		s := &session{spec: Session{ID: "s"}, up: up, asks: newAsks()}
		key := Ask{Session: "s", Name: "b.test", Port: 443}
		wait := func() (leave func() answered) {
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan answered, 1)
			go func() { got <- s.ask(ctx, key.Name, key.Port) }()
			synctest.Wait()
			return func() answered { cancel(); return <-got }
		}
		first, second := wait(), wait()
		if got := first(); got.verdict != Denied || !strings.Contains(got.why, "stays open") {
			t.Error(got)
		}
		synctest.Wait()
		if !slices.Equal(up.notes, []string{"asked b.test"}) {
			t.Error(up.notes)
		}
		second()
		synctest.Wait()
		wait()()
		synctest.Wait()
		if !slices.Equal(up.notes, []string{"asked b.test", "left b.test", "asked b.test", "left b.test"}) {
			t.Error(up.notes)
		}
		s.answer(key, AllowOnce, "")
		if got := s.ask(t.Context(), key.Name, key.Port); got.verdict != AllowOnce {
			t.Error(got)
		}
		leave := wait()
		s.answer(key, Denied, "an earlier question's")
		key.ID = 3
		s.answer(key, Denied, "no")
		synctest.Wait()
		if got := leave(); got.why != "no" || len(up.notes) != 5 {
			t.Error(got, up.notes)
		}
	})
}
