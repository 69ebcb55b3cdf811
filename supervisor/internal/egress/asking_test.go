package egress

import (
	"encoding/json"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// askingOf is a session whose relay the test plays: take has each operation in turn, and says
// which question has the answer.
func askingOf(t *testing.T, take func(op any) (taken int)) *session {
	t.Helper()
	client, _ := playedRelay(t, take)
	return &session{asks: map[relay.Ask]*asking{}, relay: &relayProcess{maker: &process.Maker{Tasks: &tasks.Tasks{}}, client: client}}
}

// playedRelay returns the client's connection as well.
func playedRelay(t *testing.T, take func(op any) (taken int)) (*relay.Client, *net.UnixConn) {
	t.Helper()
	ours, file, err := seqpacket.Pair("relay", 0)
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
			reply, _ := json.Marshal(map[string]any{"op": m["op"], "id": m["id"], "taken": take(m["op"]), "report": api.Network{}})
			_, _ = conn.Write(reply)
		}
	}()
	return client, ours
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
		n := askingOf(t, func(any) int { return test.taken })
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
		n.answer(first, test.answer, "")
		if got := <-goesOn; got != (seen{test.settled, test.given}) {
			t.Errorf("%+v: %+v", test, got)
		}
		n.relay.maker.Tasks.Wait(time.Minute)
		if _, last := ask(5, "a.test"); last.before != three.over {
			t.Error("one that is settled is waited for")
		}
	}
}

// A yes is given back, too, where the relay has ended.
func TestAYesWithoutARelay(t *testing.T) {
	n := askingOf(t, func(any) int { return 1 })
	_ = n.relay.client.Close()
	<-n.relay.client.Gone()
	given := 0
	n.answer(relay.Ask{ID: 1}, spec.Answer{Value: json.RawMessage("true"), Unused: func() { given++ }}, "")
	n.relay.maker.Tasks.Wait(time.Minute)
	if given != 1 {
		t.Errorf("it was given back %d times", given)
	}
}

// An answer is the relay's before it hears that the process serves another call: no yes is
// spent in a turn whose people have not given it.
func TestAnAnswerComesBeforeTheNextCall(t *testing.T) {
	const times = 100
	ops := make(chan any, 2*times)
	n := askingOf(t, func(op any) int { ops <- op; return 0 })
	n.at = &process.Process{} // no call is there any more, which is an answer, too
	for id := range times {
		a := relay.Ask{ID: id}
		n.asked(a, n.comes(a))
		if err := n.relay.client.Begin(t.Context(), "s", "1", true); err != nil {
			t.Fatal(err)
		}
		if first, second := <-ops, <-ops; first != "answer" || second != "begin" {
			t.Fatalf("the relay has heard %q, and then %q", first, second)
		}
	}
}

// A question that has the yes to the one before it knows that from the moment on at which
// its own wait ends.
func TestAQuestionIsSettledBeforeItsWaitEnds(t *testing.T) {
	n := askingOf(t, func(any) int { return 0 })
	a := relay.Ask{Name: "a.test", ID: 2}
	one := n.comes(a)
	one.before = make(chan struct{})
	end, answered := one.end, false
	one.end = func() { end(); answered = one.answered() }
	if n.settled(a); !answered {
		t.Error("people are asked about it")
	}
}

// A process that is killed while its session is opened ends it behind that.
func TestASessionEndsBehindItsBeginning(t *testing.T) {
	ops := make(chan any, 2)
	client, conn := playedRelay(t, func(op any) int { ops <- op; return 0 })
	n := &session{at: &process.Process{}, relay: &relayProcess{client: client, sessions: map[string]*session{}}}
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	held, resume := make(chan struct{}), make(chan struct{})
	go func() {
		_ = raw.Write(func(uintptr) bool { close(held); <-resume; return true }) // nobody else writes meanwhile
	}()
	<-held
	opened := make(chan error, 1)
	go func() {
		_, err := n.open(relay.Session{ID: "s"}, nil)
		opened <- err
	}()
	for n.at.Network() == nil {
		runtime.Gosched()
	}
	if n.mu.TryLock() {
		t.Error("the session may end before the relay has been told of it")
		n.mu.Unlock()
	}
	close(resume)
	n.at.Network().End(time.Time{}, false)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if first := <-ops; first != "open" {
		t.Errorf("%v came first", first)
	}
}
