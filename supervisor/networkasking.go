package supervisor

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/supervisor/internal/call"
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
func (n *netSession) comes(a relay.Ask) *asking {
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
func (n *netSession) left(a relay.Ask) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if one := n.asks[a]; one != nil {
		one.end()
	}
}

// settled forgets a question.
func (n *netSession) settled(a relay.Ask) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if one := n.asks[a]; one != nil {
		one.end()
		close(one.over)
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
func (n *netSession) asked(a relay.Ask, q *asking) {
	if q.answered() {
		return
	}
	settle := func(answer spec.Answer, why string) {
		n.relay.s.tasks.Run("answer about a connection", func() { n.settle(a, answer, why) })
	}
	for _, l := range n.at.Listeners() {
		if c, ok := l.(*call.Call); ok && c.AskNetwork(q.waits, a.Name, a.Port, settle) {
			return
		}
	}
	settle(spec.Answer{Denied: api.OutcomeFailed}, "no call is there to ask for")
}

// settle gives the relay an answer. A yes that has let nothing through is given back, and
// the next question about the name waits for that. A relay that does not answer is ended
// with the session, if not before.
func (n *netSession) settle(a relay.Ask, answer spec.Answer, why string) {
	v := verdictOf(answer)
	taken, _ := n.relay.client.Answer(context.Background(), a, v, why) // without a relay no connection is left
	if taken == 0 && v == relay.AllowOnce && answer.Unused != nil {
		answer.Unused()
	}
	later := a
	later.ID = taken
	n.settled(later) // before who waits for this one goes on
	n.settled(a)
}
