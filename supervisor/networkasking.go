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
	before *asking // about the same name, if it was not settled when this one came
	// over is closed when it is settled, by the verdict, which is written before.
	over    chan struct{}
	verdict relay.Verdict
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
			one.before, last = earlier, other.ID
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

// settled forgets a question. It comes before the relay knows, which may ask about the
// same name again as soon as it does.
func (n *netSession) settled(a relay.Ask, v relay.Verdict) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if one := n.asks[a]; one != nil {
		one.end()
		one.verdict, one.before = v, nil
		close(one.over)
	}
	delete(n.asks, a)
}

// answered waits until the question before this one is settled, which nobody waits for
// any more: it may have to stay open, for this one to join. A yes to it is this one's, too,
// as the relay sees it.
func (q *asking) answered() bool {
	if q.before == nil {
		return false
	}
	select {
	case <-q.before.over:
		return q.before.verdict != relay.Denied
	case <-q.waits.Done():
		return false
	}
}

// asked puts a connection's question to one of the calls that the process serves.
func (n *netSession) asked(a relay.Ask, q *asking) {
	if q.answered() {
		n.settled(a, q.before.verdict)
		return
	}
	settle := func(answer spec.Answer, why string) {
		v := verdictOf(answer)
		n.settled(a, v)
		_ = n.relay.client.Answer(a, v, why) // a relay that has ended needs none
	}
	for _, l := range n.at.Listeners() {
		if c, ok := l.(*call.Call); ok && c.AskNetwork(q.waits, a.Name, a.Port, settle) {
			return
		}
	}
	settle(spec.Answer{Denied: api.OutcomeFailed}, "no call is there to ask for")
}
