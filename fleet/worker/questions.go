package worker

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// questions are those of one call that wait for answers.
type questions struct {
	say  chan *fleetv1.Data // what is to be sent about them, until over is closed
	over chan struct{}

	mu   sync.Mutex
	last uint32
	open map[uint32]chan supervisor.Answer
}

func newQuestions() *questions {
	return &questions{say: make(chan *fleetv1.Data), over: make(chan struct{}), open: map[uint32]chan supervisor.Answer{}}
}

// failed is the answer where a question cannot be put.
var failed = supervisor.Answer{Denied: api.OutcomeFailed}

// ask puts a question to somebody at the caller's, and waits for the answer.
func (q *questions) ask(ctx context.Context, question supervisor.Question) supervisor.Answer {
	raw, err := json.Marshal(question)
	if err != nil || len(raw) > portable.MaxQuestionBytes {
		return failed
	}
	number, answered := q.expect()
	defer q.settle(number)
	q.send(&fleetv1.Data{What: &fleetv1.Data_Question{Question: &fleetv1.Question{Number: number, Question: raw}}})
	waits := ctx.Done()
	for {
		select {
		case a := <-answered:
			if question.Reach != "" {
				a.Unused = func() { q.send(&fleetv1.Data{What: &fleetv1.Data_Unused{Unused: number}}) }
			}
			return a
		case <-waits: // who answers is told, and what they say then counts as on one machine
			waits = nil
			q.send(&fleetv1.Data{What: &fleetv1.Data_Left{Left: number}})
		case <-q.over:
			return failed
		}
	}
}

func (q *questions) expect() (uint32, <-chan supervisor.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	answered := make(chan supervisor.Answer, 1)
	q.open[q.last] = answered
	return q.last, answered
}

// answer takes the first answer to an open question.
func (q *questions) answer(number uint32, a supervisor.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if answered := q.open[number]; answered != nil {
		delete(q.open, number)
		answered <- a
	}
}

// settle tells the caller that a question needs no answer any more.
func (q *questions) settle(number uint32) {
	q.mu.Lock()
	delete(q.open, number)
	q.mu.Unlock()
	q.send(&fleetv1.Data{What: &fleetv1.Data_Settled{Settled: number}})
}

func (q *questions) send(d *fleetv1.Data) {
	select {
	case q.say <- d:
	case <-q.over:
	}
}
