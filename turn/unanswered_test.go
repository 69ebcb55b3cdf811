package turn

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// says answers each question alike.
type says struct{ answer api.Answer }

func (s says) Ask(context.Context, api.Interaction) (api.Answer, error) { return s.answer, nil }

// Each way in which there is no yes has a reason of its own.
func TestNoYes(t *testing.T) {
	for reason, one := range map[api.Reason]struct {
		answer api.Answer
		says   string
	}{
		"user":               {api.Answer{}, "a human has denied it"},
		"failed, for a word": {api.Answer{Approve: true, Always: true, For: "bogus"}, "could not be used: this question is answered for one call alone: leave out for"},
		"failed, for a 5":    {api.Answer{Approve: true, Value: []byte("5")}, "could not be used: the answer does not fit: a yes or no is asked for"},
		api.OutcomeDismissed: {api.Answer{Unanswered: api.OutcomeDismissed, Approve: true}, "dismissed the question"},
		api.OutcomeFailed:    {api.Answer{Unanswered: api.OutcomeFailed}, "has failed"},
		api.OutcomeTimedOut:  {api.Answer{Unanswered: api.OutcomeTimedOut}, "nobody approved it in time"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.config.Interactor = says{one.answer}
			turn := w.begin(t, Spec{})
			defer turn.End()
			r := run(t, turn, callOf("a", "wipe", 1))[0]
			reason, _, _ := strings.Cut(string(reason), ",")
			if r.Status != api.StatusDenied || string(r.Reason) != reason || !strings.Contains(r.Message, one.says) {
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

// Who made a call gets its result before waiting ends: questions have less
// time, and what is approved late runs for what is left.
func TestUntil(t *testing.T) {
	for name, one := range map[string]struct {
		call       Call
		until      time.Duration
		answers    time.Duration // 0 is never
		want, says string
		least      time.Duration
		most       time.Duration
	}{
		"unanswered":       {callOf("a", "wipe", 1), 20 * time.Second, 0, "denied/timeout", "in time: the caller has gone by then", 15 * time.Second, 17 * time.Second},
		"its own is less":  {callOf("a", "wipe", 1), 2 * time.Minute, 0, "denied/timeout", "in time.", time.Minute, time.Minute},
		"too late already": {callOf("a", "wipe", 1), -time.Second, 0, "denied/timeout", "the caller has gone", 0, time.Second},
		"approved late":    {callOf("a", "wipe", 20_000), 20 * time.Second, 15 * time.Second, "timeout/deadline", "", 20 * time.Second, 20 * time.Second},
		"a tool's own":     {asking("a", "", nil), 20 * time.Second, 0, "ok/", "", 15 * time.Second, 18 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			turn := w.begin(t, Spec{})
			defer turn.End()
			if one.answers > 0 {
				go func() {
					time.Sleep(one.answers)
					answer(t, turn, "a", api.Answer{Approve: true})
				}()
			}
			began := time.Now()
			one.call.Until = Until{At: began.Add(one.until), Why: "the caller has gone by then"}
			r := run(t, turn, one.call)[0]
			if got := string(r.Status) + "/" + string(r.Reason); got != one.want || !strings.Contains(r.Message, one.says) {
				t.Errorf("%s: %s, want %s: %s", name, got, one.want, r.Message)
			}
			if took := time.Since(began); took < one.least || took > one.most {
				t.Errorf("%s: it took %s", name, took)
			}
		})
	}
}
