package supervisor

import (
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/network/relay"
)

// A question waits for the one before it about the same name, and has its yes.
func TestQuestionsAboutANameComeInOrder(t *testing.T) {
	for _, test := range []struct {
		verdict relay.Verdict
		yes     bool
	}{{relay.AllowOnce, true}, {relay.AllowTurn, true}, {relay.Denied, false}} {
		synctest.Test(t, func(t *testing.T) {
			n := &netSession{asks: map[relay.Ask]*asking{}}
			ask := func(id int, name string) (relay.Ask, *asking) {
				a := relay.Ask{Session: "s", Name: name, Port: 443, ID: id}
				return a, n.comes(a)
			}
			first, one := ask(1, "a.test")
			n.left(first)
			second, two := ask(2, "a.test")
			_, other := ask(3, "b.test")
			third, three := ask(4, "a.test")
			if one.waits.Err() == nil || one.answered() || other.answered() || two.before != one || three.before != two {
				t.Fatal("the order is not kept")
			}
			answers := make(chan bool, 1)
			go func() { answers <- two.answered() }()
			synctest.Wait()
			if len(answers) > 0 {
				t.Error("the second one does not wait for the first")
			}
			n.settled(first, test.verdict)
			if yes := <-answers; yes != test.yes {
				t.Errorf("after %q: %t", test.verdict, yes)
			}
			n.left(third)
			if three.answered() {
				t.Error("nobody waits for the third one any more")
			}
			n.settled(second, relay.Denied)
			if _, last := ask(5, "a.test"); last.before != three {
				t.Error("one that is settled is waited for")
			}
		})
	}
}
