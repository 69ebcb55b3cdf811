package supervisor

import (
	"encoding/json"
	"net"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// answeringRelay plays a relay that gives each answer to the question with that ID.
func answeringRelay(t *testing.T, taken int) *relay.Client {
	t.Helper()
	ours, file, err := packetPair()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	client := relay.NewClient(ours, nil)
	t.Cleanup(func() { _, _ = conn.Close(), client.Close() })
	go func() {
		for raw := make([]byte, 4096); ; {
			n, err := conn.Read(raw)
			var m map[string]any
			if err != nil || json.Unmarshal(raw[:n], &m) != nil {
				return
			}
			reply, _ := json.Marshal(map[string]any{"op": m["op"], "id": m["id"], "taken": taken})
			_, _ = conn.Write(reply)
		}
	}()
	return client
}

// A question waits for the one before it about the same name, and has its yes if the relay
// says so. A yes that has let nothing through is given back before.
func TestQuestionsAboutANameComeInOrder(t *testing.T) {
	yes := json.RawMessage("true")
	for _, test := range []struct {
		answer         spec.Answer
		taken          int
		settled, given bool
	}{
		{answer: spec.Answer{Value: yes}, taken: 1},
		{answer: spec.Answer{Value: yes}, taken: 2, settled: true},
		{answer: spec.Answer{Value: yes}, given: true},
		{answer: spec.Answer{Value: yes, Always: true}, taken: 2, settled: true},
		{answer: spec.Answer{Value: yes, Always: true}},
		{answer: spec.Answer{Denied: api.OutcomeCancelled}},
	} {
		n := &netSession{asks: map[relay.Ask]*asking{}, relay: &relayProcess{client: answeringRelay(t, test.taken)}}
		ask := func(id int, name string) (relay.Ask, *asking) {
			a := relay.Ask{Session: "s", Name: name, Port: 443, ID: id}
			return a, n.comes(a)
		}
		first, one := ask(1, "a.test")
		n.left(first)
		_, two := ask(2, "a.test")
		_, other := ask(3, "b.test")
		third, three := ask(4, "a.test")
		if one.waits.Err() == nil || one.answered() || other.answered() || two.before != one.over || three.before != two.over {
			t.Fatal("the order is not kept")
		}
		given := make(chan struct{}, 1)
		test.answer.Unused = func() { given <- struct{}{} }
		type seen struct{ settled, given bool }
		goesOn := make(chan seen, 1)
		go func() {
			settled := two.answered()
			goesOn <- seen{settled, len(given) > 0}
		}()
		if n.left(third); three.answered() {
			t.Error("nobody waits for the third one any more")
		}
		n.settle(first, test.answer, "")
		if got := <-goesOn; got != (seen{test.settled, test.given}) {
			t.Errorf("%+v: %+v", test, got)
		}
		if _, last := ask(5, "a.test"); last.before != three.over {
			t.Error("one that is settled is waited for")
		}
	}
}

// A yes is given back, too, where the relay has ended.
func TestAYesWithoutARelay(t *testing.T) {
	n := &netSession{asks: map[relay.Ask]*asking{}, relay: &relayProcess{client: answeringRelay(t, 1)}}
	_ = n.relay.client.Close()
	<-n.relay.client.Gone()
	given := 0
	n.settle(relay.Ask{ID: 1}, spec.Answer{Value: json.RawMessage("true"), Unused: func() { given++ }}, "")
	if given != 1 {
		t.Errorf("it was given back %d times", given)
	}
}
