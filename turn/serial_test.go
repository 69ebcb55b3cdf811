package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// oneByOne answers each question 50 s after it was asked.
type oneByOne struct {
	t     *testing.T
	busy  bool
	asked []string
	no    map[string]bool
}

func (o *oneByOne) OneAtATime() {}

func (o *oneByOne) Ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	if o.busy {
		o.t.Errorf("%s is asked beside another", i.CallID)
	}
	o.busy = true
	defer func() { o.busy = false }()
	o.asked = append(o.asked, i.CallID)
	if left := time.Until(i.ExpiresAt); left != time.Duration(i.TimeoutMs)*time.Millisecond {
		o.t.Errorf("%s has %s left of %d ms when it is asked", i.CallID, left, i.TimeoutMs)
	}
	select {
	case <-time.After(50 * time.Second):
		return api.Answer{Approve: !o.no[i.CallID], By: "me"}, nil
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
}

// Each question has all of its time, in the order of the calls.
func TestQuestionsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		human := &oneByOne{t: t, no: map[string]bool{"b": true}}
		w.config.Interactor = human
		turn := w.begin(t, Spec{})
		defer turn.End()
		want(t, run(t, turn, callOf("a", "wipe", 1), callOf("b", "wipe", 1), callOf("c", "ask", 1), callOf("d", "wipe", 1)), "ok", "denied/user", "ok", "ok")
		if got := human.asked; len(got) != 4 || got[0] != "a" || got[1] != "b" || got[2] != "c" || got[3] != "d" {
			t.Errorf("asked for %q", got)
		}
	})
}

// What waits for another question is not asked once its turn has ended, and
// nobody can answer it before.
func TestUnraisedQuestionsEndWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		human := &oneByOne{t: t}
		w.config.Interactor = human
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			time.Sleep(10 * time.Second)
			info, _ := turn.Info()
			if n := len(info.PendingInteractions); n != 1 {
				t.Errorf("%d questions are pending", n)
			}
			turn.Abort(api.ReasonUser)
		}()
		want(t, run(t, turn, callOf("a", "wipe", 1), callOf("b", "wipe", 1), callOf("c", "wipe", 1)), "cancelled/user", "cancelled/user", "cancelled/user")
		if len(human.asked) != 1 {
			t.Errorf("asked for %q", human.asked)
		}
	})
}
