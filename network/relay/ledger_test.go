package relay

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
)

// A call of a kept process has neither an error nor a time of those before it.
func TestACallHasItsOwnErrors(t *testing.T) {
	l := newLedger()
	key, begun := flowKey{name: "a.test", port: 443}, time.Now()
	l.begin("a", 0)
	l.failed(key, begun, "connection refused")
	if r := l.end("a", 0); len(r.Flows) != 1 || r.Flows[0].Error == "" {
		t.Errorf("%+v", r)
	}
	l.begin("b", 3)
	l.failed(key, begun.Add(time.Second), "")
	r := l.end("b", 5)
	if len(r.Flows) != 1 || r.Flows[0].Error != "" || r.Flows[0].FirstMs < 1000 || r.Flows[0].Connections != 1 || r.Unreachable != 2 {
		t.Errorf("%+v", r)
	}
	if l.end("b", 5) != nil {
		t.Error("the call counts still")
	}
}

// The bounds of a report are each call's own.
func TestACallHasItsOwnEntries(t *testing.T) {
	l := newLedger()
	for i := range 2 * api.MaxNetworkEntries {
		l.failed(flowKey{name: "a.test", address: fmt.Sprint("before ", i)}, time.Now(), "")
		l.refuse(refusalKey{name: fmt.Sprint("before", i)}, false)
	}
	l.begin("a", 0)
	l.failed(flowKey{name: "a.test", address: "since"}, time.Now(), "")
	l.refuse(refusalKey{name: "since"}, false)
	r := l.end("a", 0)
	if len(r.Flows) != 1 || r.Flows[0].Address != "since" || r.MoreFlows != 0 {
		t.Errorf("%+v, and %d more", r.Flows, r.MoreFlows)
	}
	if len(r.Refused) != 1 || r.Refused[0].Name != "since" || r.MoreRefused != 0 {
		t.Errorf("%+v, and %d more", r.Refused, r.MoreRefused)
	}
}

// What there is no room for counts all the same.
func TestWhatIsLeftOutCounts(t *testing.T) {
	b := newBook(time.Now())
	for i := range api.MaxNetworkEntries + 2 {
		b.add(flowKey{name: "a.test", address: fmt.Sprint(i)}, time.Now(), carried{1, 10, 100}, "")
		b.refuse(refusalKey{name: fmt.Sprint(i)}, false)
	}
	r := b.report(nil, 0)
	if len(r.Flows) != api.MaxNetworkEntries || r.MoreFlows != 2 || r.MoreSentBytes != 20 || r.MoreReceivedBytes != 200 || r.MoreRefused != 2 {
		t.Errorf("%d flows; more: %d, %d bytes sent, %d received, %d refused", len(r.Flows), r.MoreFlows, r.MoreSentBytes, r.MoreReceivedBytes, r.MoreRefused)
	}
	const n = api.MaxNetworkEntries + 2
	if all, refused := r.Total(); all != (api.NetworkFlow{Connections: n, SentBytes: 10 * n, ReceivedBytes: 100 * n}) || refused != n {
		t.Errorf("%+v and %d refused", all, refused)
	}
}

// A connection from before a call counts for it by what it has carried since, and by
// its end.
func TestAConnectionFromBeforeACall(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{})
	c, peer := connected(t, s)
	o, err := newOuter(c.in, flowKey{name: "a.test", port: 1}, time.Now(), s.ledger)
	if err != nil {
		t.Fatal(err)
	}
	for n, call := range []string{"a", "b", "c"} {
		s.ledger.begin(call, 0)
		for range n {
			if _, err := io.WriteString(o, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if call == "c" {
			break
		}
		if r := s.reportOf(call); len(r.Flows) != n || n > 0 && (r.Flows[0].SentBytes != 1 || r.Flows[0].Connections != 0) {
			t.Errorf("%s: %+v", call, r.Flows)
		}
	}
	s.ledger.begin("d", 0)
	o.finish("broken", true)
	for call, sent := range map[string]int64{"c": 2, "d": 0} {
		if r := s.reportOf(call); len(r.Flows) != 1 || r.Flows[0].SentBytes != sent || r.Flows[0].Error != "broken" {
			t.Errorf("%s: %+v", call, r.Flows)
		}
	}
}

// A session that ends says first what came of the calls that count still.
func TestASessionThatEndsReportsItsCalls(t *testing.T) {
	got := reports{}
	client, _ := newControl(t, got)
	opened, err := client.Open(Session{ID: "s"}, sockets(t, listenAt(t, "127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"a", "b"} {
		if err := client.Begin(t.Context(), "s", call, false); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := client.Report(t.Context(), "s", "a"); err != nil || r == nil {
		t.Error(r, err)
	}
	if r, err := client.End(t.Context(), "s", false); err != nil || r == nil {
		t.Error(r, err)
	}
	if len(got) != 1 || got["b"] == nil {
		t.Errorf("%v", got)
	}
}

// reports are what a relay says of calls whose session it ends.
type reports map[string]*api.Network

func (r reports) Left(Ask)                                 {}
func (r reports) Asked(Ask)                                {}
func (r reports) Passed(_, _ string)                       {}
func (r reports) Reported(_, call string, is *api.Network) { r[call] = is }
