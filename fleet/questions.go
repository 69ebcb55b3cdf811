package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// maxQuestions bounds those of a call that are open at once; a supervisor's own bound is
// below it.
const maxQuestions = 16

// conversation is what a call's tool has asked, and was answered.
type conversation struct {
	questions map[uint32]*question
	yeses     map[uint32]func() // Unused of the last answers that have it
	replies   chan replied
	unfit     []string // why the tool did not get answers
	asking    sync.WaitGroup
}

// question is one of a tool that is not settled.
type question struct {
	leave  context.CancelFunc // nobody waits for the answer any more
	settle context.CancelFunc // nor does it count
	answer *supervisor.Answer // that the worker's key is not known for yet
	reply  *fleetv1.Answer    // once there is one
	sent   time.Duration
	waits  bool // for its answer
}

// replied is an answer on its way to the call's goroutine.
type replied struct {
	number uint32
	answer supervisor.Answer
	unfit  error // why it is not what was answered
}

// asked puts a question of the tool to who answers for the caller.
func (c *remote) asked(ctx context.Context, q *fleetv1.Question) {
	number := q.GetNumber()
	if c.questions[number] != nil || len(c.questions) >= maxQuestions {
		return
	}
	open, settle := context.WithCancel(ctx)
	asking, leave := context.WithCancel(open)
	c.questions[number] = &question{leave: leave, settle: settle, waits: true}
	c.times.asked()
	var read supervisor.Question
	err := json.Unmarshal(q.GetQuestion(), &read)
	ask := c.request.Ask
	c.asking.Go(func() {
		answer, unfit := supervisor.Answer{Denied: api.OutcomeFailed}, error(nil)
		if err == nil && ask != nil {
			answer, unfit = ask(asking, read).Passable(portable.MaxQuestionBytes)
		}
		select {
		case c.replies <- replied{number, answer, unfit}:
		case <-open.Done():
			giveBack(answer.Unused)
		}
	})
}

// giveBack has who answers keep a yes that has let nothing through.
func giveBack(unused func()) {
	if unused != nil {
		unused()
	}
}

// reply takes an answer, and sends it once the worker's key is known.
func (c *remote) reply(r replied) {
	q := c.questions[r.number]
	n, has := c.state.Chosen()
	if q == nil || !has {
		c.asking.Go(func() { giveBack(r.answer.Unused) })
		return
	}
	c.times.answered(q)
	if r.unfit != nil && len(c.unfit) < maxQuestions {
		c.unfit = append(c.unfit, r.unfit.Error())
	}
	if q.answer = &r.answer; c.ready != nil {
		c.seal(c.attempts[n], r.number, q)
	}
}

// seal makes an answer ready for its way and sends it, sealed, since it may be a credential:
// for a key that the worker has not signed, only that the question is denied.
func (c *remote) seal(a *attempt, number uint32, q *question) {
	answer := *q.answer
	q.answer = nil
	if err := c.f.vouched(a, c.ready); err != nil {
		c.f.config.Logger.Warn("an answer is not given to a worker", "call", c.request.ID, "worker", a.id.Worker, "why", err)
		unused := answer.Unused
		c.asking.Go(func() { giveBack(unused) })
		answer = supervisor.Answer{Denied: api.OutcomeFailed}
	}
	c.expectBack(number, answer.Unused)
	if raw, err := json.Marshal(answer); err == nil {
		if sealed, err := c.f.curve.Seal([]string{string(raw)}, c.ready.GetXkey()); err == nil {
			q.reply = &fleetv1.Answer{Question: number, Answer: sealed, Xkey: c.f.curve.Public()}
			c.sendReply(a, q)
		}
	}
}

// expectBack lets the worker give an answer back, also once it has settled the question.
// Only the last ones are kept for that.
func (c *remote) expectBack(number uint32, unused func()) {
	if unused == nil {
		return
	}
	if len(c.yeses) == maxQuestions {
		delete(c.yeses, slices.Min(slices.Collect(maps.Keys(c.yeses))))
	}
	c.yeses[number] = unused
}

// unused gives back, once, a yes that was given to the worker.
func (c *remote) unused(number uint32) {
	if unused := c.yeses[number]; unused != nil {
		delete(c.yeses, number)
		c.asking.Go(unused)
	}
}

func (c *remote) sendReply(a *attempt, q *question) {
	q.sent = now()
	c.f.control(a.id, a.inbox, &fleetv1.Control{What: &fleetv1.Control_Answer{Answer: q.reply}})
}

// sendRepliesAgain repeats answers that the worker has not settled yet, and sends those whose
// key was not known.
func (c *remote) sendRepliesAgain(a *attempt) {
	for number, q := range c.questions {
		switch {
		case q.answer != nil && c.ready != nil:
			c.seal(a, number, q)
		case q.reply != nil && now()-q.sent >= goAgain:
			c.sendReply(a, q)
		}
	}
}

// settled ends a question that needs no answer any more.
func (c *remote) settled(number uint32) {
	if q := c.questions[number]; q != nil {
		c.times.answered(q)
		q.settle()
		if q.answer != nil { // it was not sent
			unused := q.answer.Unused
			c.asking.Go(func() { giveBack(unused) })
		}
		delete(c.questions, number)
	}
}

// left tells who is asked that nobody waits for the answer any more.
func (c *remote) left(number uint32) {
	if q := c.questions[number]; q != nil {
		q.leave()
	}
}

// endQuestions ends all, and waits for those who were asked.
func (c *remote) endQuestions() {
	for number := range c.questions {
		c.settled(number)
	}
	c.asking.Wait()
}
