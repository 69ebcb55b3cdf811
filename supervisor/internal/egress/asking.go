package egress

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// asking is a question of a relay's that is not settled.
type asking struct {
	waits  context.Context // ends when no connection waits for the answer any more
	end    context.CancelFunc
	over   chan struct{} // closed when it is settled
	before chan struct{} // over of the last one about the same name, if that was open when this one came
}

// comes notes a question, in the order in which they come.
func (n *session) comes(a relay.Ask) *asking {
	one := &asking{over: make(chan struct{})}
	one.waits, one.end = context.WithCancel(context.Background())
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	last := 0
	for other, earlier := range n.asks {
		if other.Name == a.Name && other.Port == a.Port && other.ID > last {
			one.before, last = earlier.over, other.ID
		}
	}
	n.asks[a] = one
	return one
}

// left is for a question that no connection waits for any more.
func (n *session) left(a relay.Ask) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if one := n.asks[a]; one != nil {
		one.end()
	}
}

// leftAll is for a relay that has ended, and all connections with it.
func (n *session) leftAll() {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	for _, one := range n.asks {
		one.end()
	}
}

// settled forgets a question.
func (n *session) settled(a relay.Ask) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if one := n.asks[a]; one != nil {
		close(one.over) // before who waits for one of both goes on
		one.end()
	}
	delete(n.asks, a)
}

// answered waits until the question before this one is settled, which nobody waits for
// any more: it may have to stay open, for this one to join. A yes to it may have settled
// this one, too.
func (q *asking) answered() bool {
	if q.before == nil {
		return false
	}
	select {
	case <-q.before:
	case <-q.waits.Done():
	}
	return closed(q.over)
}

// asked puts a connection's question to one of the calls that the process serves.
func (n *session) asked(a relay.Ask, q *asking) {
	if q.answered() {
		return
	}
	settle := func(answer spec.Answer, why string) { n.answer(a, answer, why) }
	for _, l := range n.at.Listeners() {
		if l.AskNetwork(q.waits, a.Name, a.Port, settle) {
			return
		}
	}
	settle(spec.Answer{Denied: api.OutcomeFailed}, "no call is there to ask for")
}

// answer gives the relay an answer. When it returns the relay has it before all that it is
// told later, such as that the process serves another call, and maybe another turn.
func (n *session) answer(a relay.Ask, answer spec.Answer, why string) {
	v := verdictOf(answer)
	wait, err := n.relay.client.Answer(a, v, why)
	n.relay.maker.Tasks.Run("settle a question about a connection", func() {
		taken := 0
		if err == nil { // else there is no relay, and no connection left
			taken, _ = wait(context.Background())
		}
		n.settle(a, taken, v, answer)
	})
}

// settle ends a question by its answer, which the one has whose ID is taken. A yes that has
// let nothing through is given back, and the next question about the name waits for that. A
// relay that does not answer is ended with the session, if not before.
func (n *session) settle(a relay.Ask, taken int, v relay.Verdict, answer spec.Answer) {
	if taken == 0 && v == relay.AllowOnce && answer.Unused != nil {
		answer.Unused()
	}
	later := a
	later.ID = taken
	n.settled(later) // before who waits for this one goes on
	n.settled(a)
}

func verdictOf(a spec.Answer) relay.Verdict {
	switch {
	case a.Denied != "" || string(a.Value) != "true":
		return relay.Denied
	case a.Always:
		return relay.AllowTurn
	}
	return relay.AllowOnce
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
