package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

type asked struct {
	value json.RawMessage
	err   error
}

func ask(ctx context.Context, out *Output, q Question) <-chan asked {
	done := make(chan asked, 1)
	go func() {
		value, err := out.Ask(ctx, q)
		done <- asked{value, err}
	}()
	synctest.Wait()
	return done
}

func TestAskOutcomes(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer *pluginv1.AnswerRequest
		want   string
		denied bool
	}{
		{"answered", &pluginv1.AnswerRequest{Outcome: pluginv1.AnswerRequest_OUTCOME_ANSWERED, Value: []byte(`"blue"`)}, `"blue"`, false},
		{"denied", &pluginv1.AnswerRequest{Outcome: pluginv1.AnswerRequest_OUTCOME_DENIED, Value: []byte(`true`), Reason: "not today"}, "", true},
		{"timed out", &pluginv1.AnswerRequest{Outcome: pluginv1.AnswerRequest_OUTCOME_TIMED_OUT, Reason: "not today"}, "", true},
		{"no outcome", &pluginv1.AnswerRequest{Value: []byte(`true`), Reason: "not today"}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := NewOutput(new(record).send)
				done := ask(t.Context(), out, Question{})
				test.answer.InteractionId = "ask-1"
				out.answers.deliver(test.answer)
				got := <-done
				if string(got.value) != test.want || errors.Is(got.err, ErrDenied) != test.denied {
					t.Errorf("got %s, %v", got.value, got.err)
				}
				denied, _ := errors.AsType[*DeniedError](got.err)
				if test.denied && denied.TimedOut != (test.name == "timed out") {
					t.Errorf("denied: %+v", denied)
				}
				if test.denied && !strings.Contains(got.err.Error(), "not today") {
					t.Errorf("error %q does not give the reason", got.err)
				}
				if n := len(out.answers.pending); n != 0 {
					t.Errorf("%d questions left", n)
				}
			})
		})
	}
}

func TestAskSendsTheWholeQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		out := NewOutput(r.send)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := ask(ctx, out, Question{Prompt: "Which?", Schema: json.RawMessage(`{}`), Timeout: 90 * time.Second, Secret: true})
		want := &pluginv1.CallEvent{Seq: 1, Event: &pluginv1.CallEvent_Ask{Ask: &pluginv1.Ask{
			InteractionId: "ask-1", Prompt: "Which?", Schema: []byte(`{}`), TimeoutMs: 90_000, Secret: true,
		}}}
		if got := r.all(); len(got) != 1 || !proto.Equal(got[0], want) {
			t.Errorf("sent %v, want %v", got, want)
		}
		cancel(ErrCancelled)
		if got := <-done; got.value != nil || !errors.Is(got.err, ErrCancelled) {
			t.Errorf("got %s, %v", got.value, got.err)
		}
	})
}

// Less than a millisecond is one: 0 would be the host's default.
func TestAskForAMoment(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, timeout := range []time.Duration{0, time.Nanosecond, 1500 * time.Microsecond} {
		_, _ = out.Ask(ended, Question{Timeout: timeout})
	}
	for i, want := range []int64{0, 1, 1} {
		if got := r.all()[i].GetAsk().GetTimeoutMs(); got != want {
			t.Errorf("question %d: %d ms, want %d", i, got, want)
		}
	}
}

// A question that its asker has given up waits at the host, whose clock stands still and
// which counts it.
func TestQuestionsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		out := NewOutput(r.send)
		out.clock = newCallContext(t.Context(), time.Minute)
		defer out.clock.release()
		began := out.clock.deadline
		for range handshake.MaxQuestions {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if got := <-ask(ctx, out, Question{}); !errors.Is(got.err, context.DeadlineExceeded) {
				t.Fatal(got.err)
			}
			stop()
		}
		if _, err := out.Ask(t.Context(), Question{}); err == nil || len(r.all()) != handshake.MaxQuestions {
			t.Errorf("one more: %v, and %d were sent", err, len(r.all()))
		}
		time.Sleep(2 * time.Minute)
		for i := range handshake.MaxQuestions {
			if out.clock.Err() != nil {
				t.Fatal("the call's time is over")
			}
			out.answer(&pluginv1.AnswerRequest{InteractionId: "ask-" + strconv.Itoa(i+1)})
		}
		if moved := out.clock.deadline.Sub(began); moved != 2*time.Minute+8*time.Second {
			t.Errorf("the deadline moved by %v", moved)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(out.clock), ErrDeadline) {
			t.Errorf("%v", context.Cause(out.clock))
		}
	})
}

// A timeout of the tool's own holds while the call's clock stands still, and after its
// first deadline.
func TestTimeoutsOfATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput(new(record).send)
		out.clock = newCallContext(t.Context(), 30*time.Second)
		defer out.clock.release()
		for range 2 {
			ctx, stop := context.WithTimeout(out.clock, time.Minute)
			defer stop()
			done := ask(ctx, out, Question{})
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(done) == 0 {
				t.Fatal("the question waits on")
			}
			if got := <-done; !errors.Is(got.err, context.DeadlineExceeded) {
				t.Error(got.err)
			}
			if at, ok := out.clock.Deadline(); ok {
				t.Errorf("the call's context states a deadline: %v", at)
			}
		}
	})
}

// What could not be sent waits for no answer.
func TestQuestionsThatAreNotSent(t *testing.T) {
	out := NewOutput(func(*pluginv1.CallEvent) error { return errors.New("gone") })
	out.clock = newCallContext(t.Context(), time.Minute)
	defer out.clock.release()
	if _, err := out.Ask(t.Context(), Question{}); err == nil || len(out.answers.pending) != 0 || out.clock.waits != 0 {
		t.Errorf("%v, %d pending, %d waits", err, len(out.answers.pending), out.clock.waits)
	}
}

func TestAnswersFindTheirOwnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput(new(record).send)
		first := ask(t.Context(), out, Question{})
		second := ask(t.Context(), out, Question{})
		answer := func(id, value string) {
			out.answers.deliver(&pluginv1.AnswerRequest{
				InteractionId: id, Outcome: pluginv1.AnswerRequest_OUTCOME_ANSWERED, Value: []byte(value),
			})
		}
		answer("ask-9", "9")
		answer("ask-2", "2")
		if got := <-second; string(got.value) != "2" {
			t.Errorf("second: %s, %v", got.value, got.err)
		}
		synctest.Wait()
		if len(first) != 0 {
			t.Fatal("the first question took another's answer")
		}
		answer("ask-1", "1")
		answer("ask-1", "again") // dropped
		if got := <-first; string(got.value) != "1" {
			t.Errorf("first: %s, %v", got.value, got.err)
		}
	})
}

// In the bubble a delivery that blocks is a deadlock, which fails the test.
func TestASecondAnswerNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		id, answer, err := a.expect()
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"first", "second"} {
			a.deliver(&pluginv1.AnswerRequest{InteractionId: id, Reason: reason})
		}
		if got := <-answer; got.GetReason() != "first" || len(answer) != 0 {
			t.Errorf("got %v, and %d more", got, len(answer))
		}
	})
}

// What would end the call at its host is an error of Ask, and is not sent.
func TestQuestionsThatNoHostTakes(t *testing.T) {
	sent := 0
	out := NewOutput(func(*pluginv1.CallEvent) error { sent++; return nil })
	if _, err := out.Ask(t.Context(), Question{Prompt: "How many?", Schema: []byte(`{"type":`)}); err == nil || !strings.Contains(err.Error(), `cannot ask "How many?": its Schema is not JSON`) {
		t.Error(err)
	}
	for range handshake.MaxQuestions {
		if _, _, err := out.answers.expect(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := out.Ask(t.Context(), Question{Prompt: "one more"}); err == nil || !strings.Contains(err.Error(), "8 questions of the call wait") {
		t.Error(err)
	}
	if sent != 0 {
		t.Errorf("%d events were sent", sent)
	}
}
