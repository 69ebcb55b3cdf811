package worker

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// A yes about a connection that has let none through goes back to the caller, behind the
// word that its question is settled.
func TestAYesThatWasNotUsed(t *testing.T) {
	q := newQuestions()
	got := make(chan supervisor.Answer, 1)
	go func() { got <- q.ask(t.Context(), supervisor.Question{Reach: "b.test:443"}) }()
	number := (<-q.say).GetQuestion().GetNumber()
	q.answer(number, supervisor.Answer{Value: json.RawMessage("true")})
	if settled := (<-q.say).GetSettled(); settled != number {
		t.Errorf("question %d is settled, want %d", settled, number)
	}
	go (<-got).Unused()
	if unused := (<-q.say).GetUnused(); unused != number {
		t.Errorf("the answer to question %d was not used, want %d", unused, number)
	}
	close(q.over)
	q.send(nil) // after the call's end nothing is said, and nobody waits
}
