package turn

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/supervisor"
)

// says answers each question alike.
type says struct{ answer Answer }

func (s says) Ask(context.Context, Interaction) (Answer, error) { return s.answer, nil }

// Each way in which there is no yes has a reason of its own.
func TestNoYes(t *testing.T) {
	for reason, one := range map[string]struct {
		answer Answer
		says   string
	}{
		"user":           {Answer{}, "a human has denied it"},
		OutcomeDismissed: {Answer{Unanswered: OutcomeDismissed, Approve: true}, "dismissed the question"},
		OutcomeFailed:    {Answer{Unanswered: OutcomeFailed}, "has failed"},
		OutcomeTimedOut:  {Answer{Unanswered: OutcomeTimedOut}, "nobody approved it in time"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.config.Interactor = says{one.answer}
			turn := w.begin(t, Spec{})
			defer turn.End()
			r := run(t, turn, callOf("a", "wipe", 1))[0]
			if r.Status != supervisor.StatusDenied || r.Reason != reason || !strings.Contains(r.Message, one.says) {
				t.Errorf("%s: %s/%s: %s", reason, r.Status, r.Reason, r.Message)
			}
		})
	}
}

// What wants more time than there is ends as unanswered.
func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			synctest.Wait()
			turn.Expire()
		}()
		want(t, run(t, turn, callOf("a", "wipe", 1)), "denied/timeout")
	})
}
