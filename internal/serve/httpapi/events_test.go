package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/turn"
)

// maxKept is how many events a turn holds.
const maxKept = 4096

// until waits for a condition that nothing announces.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	limit := time.After(hangLimit)
	for tick := time.NewTicker(time.Millisecond); !condition(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestAStreamOpensATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s, err := w.client.Open(w.ctx(), api.TurnSpec{SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Next()
	if err != nil || first.Kind != api.EventTurnStart || first.SessionID != "s" {
		t.Fatalf("first event: %v, %+v", err, first)
	}
	if _, err := w.client.Run(w.ctx(), first.TurnID, []api.Call{callOf("1", "work", fakeArgs{})}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(w.ctx(), first.TurnID); err != nil {
		t.Fatal(err)
	}
	kinds := []api.EventKind{first.Kind}
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	want := []api.EventKind{"turn_start", "tool_queued", "tool_started", "tool_finished", "turn_end"}
	if !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
}

// wantSteps checks that nothing is left out or there twice.
func wantSteps(t *testing.T, seqs []int64) {
	t.Helper()
	for i := 1; i < len(seqs); i++ {
		if seqs[i] != seqs[i-1]+1 {
			t.Fatalf("event %d after event %d", seqs[i], seqs[i-1])
		}
	}
}

// play has a turn happen that has n events and some.
func (w *world) play(n int) (id string) {
	w.t.Helper()
	id = w.begin(api.TurnSpec{})
	if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf("1", "work", fakeArgs{Chatter: n})}); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// watched collects the events of a turn up to one of a kind.
func (w *world) watched(id string, after int64, last api.EventKind) (events []api.Record) {
	w.t.Helper()
	if err := w.client.Watch(w.ctx(), id, after, func(e api.Record) bool {
		events = append(events, e)
		return e.Kind != last
	}); err != nil {
		w.t.Fatal(err)
	}
	return events
}

// A reader resumes behind any event without loss or duplicates, while the turn
// goes on and after its end, and sees what is on record, byte for byte.
func TestWatchersResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.play(300)
	live := w.watched(id, 0, "tool_finished")
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	var replayed []api.Record
	if err := w.client.Replay(w.ctx(), id, 0, func(e api.Record) bool { replayed = append(replayed, e); return true }); err != nil {
		t.Fatal(err)
	}
	if len(live) != len(replayed)-1 || len(live) < 300 {
		t.Fatalf("%d events live, %d on record", len(live), len(replayed))
	}
	for i, e := range live {
		if !bytes.Equal(e.JSON, replayed[i].JSON) || e.Seq != int64(i+1) {
			t.Fatalf("event %d: %s, on record %s", i, e.JSON, replayed[i].JSON)
		}
	}
	for _, after := range []int64{1, 150, int64(len(live)) - 1} {
		rest := w.watched(id, after, "turn_end")
		if rest[0].Seq != after+1 || int64(len(rest)) != int64(len(replayed))-after {
			t.Errorf("after %d: %d events from %d on", after, len(rest), rest[0].Seq)
		}
	}
	if status, body := w.send("GET", "/api/turns/"+id+"/events?after=299", "", "Accept", eventStream); status != 200 || !strings.Contains(body, "\nid: 300\n") {
		t.Errorf("%d %s", status, body)
	}
	if err := w.client.Watch(w.ctx(), "never", 0, func(api.Record) bool { return true }); !client.IsNotFound(err) {
		t.Errorf("a turn that never was: %v", err)
	}
}

// What a turn no longer holds comes from the journal; without one, a gap says
// so, and a reader that comes back goes on behind it.
func TestGaps(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("journal=%t", kept), func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				if !kept {
					c.History = nil
				}
			})
			id := w.play(maxKept + 100)
			w.watched(id, 0, "tool_finished") // this one may keep pace with the turn
			events := w.watched(id, 0, "tool_finished")
			var seqs []int64
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			if kept {
				wantSteps(t, seqs)
				return
			}
			gap := events[0].Gap
			if gap == nil || gap.From != 1 || gap.To < 100 || gap.TurnID != id {
				t.Fatalf("first %+v, gap %+v", events[0], gap)
			}
			wantSteps(t, seqs) // a gap stands for the last event that is missing
			if rest := w.watched(id, gap.To, "tool_finished"); rest[0].Gap != nil || len(rest) != len(events)-1 {
				t.Errorf("behind the gap: %d events, first %+v", len(rest), rest[0])
			}
		})
	}
}

// A turn that somebody else has begun can be watched too, from where it still
// is held.
func TestAForeignTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.History = nil })
	foreign, err := w.turns.Begin(turn.Spec{ID: "foreign"})
	if err != nil {
		t.Fatal(err)
	}
	call := callOf("1", "work", fakeArgs{Chatter: 3 * maxKept})
	if _, err := foreign.Run(w.ctx(), []turn.Call{{ID: call.ID, Tool: call.Tool, Arguments: call.Arguments}}); err != nil {
		t.Fatal(err)
	}
	events := w.watched("foreign", 0, "tool_finished")
	if events[0].Gap == nil || len(events) < maxKept/8 {
		t.Errorf("%d events, the first %+v", len(events), events[0])
	}
}

// holed is a history that has lost the third event of each turn.
type holed struct{ History }

func (h holed) Events(turnID string, after int64, yield func(journal.Event) bool) error {
	return h.History.Events(turnID, after, func(e journal.Event) bool { return e.Seq == 3 || yield(e) })
}

// damaged is a history that cannot be read behind the third event of a turn.
type damaged struct{ History }

func (h damaged) Events(turnID string, after int64, yield func(journal.Event) bool) error {
	err := h.History.Events(turnID, after, func(e journal.Event) bool { return e.Seq <= 3 && yield(e) })
	return errors.Join(err, journal.ErrCorrupt)
}

// A record that cannot be read whole does not look as if it were.
func TestARecordThatIsDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.History = damaged{c.History} })
	id := w.begin(api.TurnSpec{TurnID: "past"})
	if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf("1", "work", fakeArgs{})}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	var seen int64
	err := w.client.Watch(w.ctx(), id, 0, func(e api.Record) bool { seen = e.Seq; return true })
	if failed, ok := errors.AsType[*api.Error](err); !ok || failed.Code != codeInternal || seen != 3 {
		t.Errorf("event %d is the last, error %v", seen, err)
	}
}

// A turn that is over is told with what its record lacks.
func TestReplayMarksWhatIsNotOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.History = holed{c.History} })
	id := w.begin(api.TurnSpec{TurnID: "past"})
	if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf("1", "work", fakeArgs{})}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	var gaps []api.Gap
	for _, e := range w.watched("past", 0, "turn_end") {
		if e.Gap != nil {
			gaps = append(gaps, *e.Gap)
		}
	}
	if want := []api.Gap{{TurnID: "past", From: 3, To: 3}}; !slices.Equal(gaps, want) {
		t.Errorf("the gaps are %v, want %v", gaps, want)
	}
}

// dial sends a request by hand and gives the connection, unread.
func (w *world) dial(head string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, head); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// A reader that takes nothing is dropped, and holds up neither the calls nor
// the other readers.
func TestASlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Stall = time.Second })
	id := w.begin(api.TurnSpec{})
	w.dial("GET /api/turns/" + id + "/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	until(t, "the stream", func() bool { return w.server.streams.open() == 1 })
	for i := range 5 {
		if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf(fmt.Sprint(i), "work", fakeArgs{Chatter: 2000})}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.watched(id, 9000, "tool_finished")); n == 0 {
		t.Error("no events for others")
	}
	until(t, "the slow reader's end", func() bool { return w.server.streams.open() == 0 })
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Heartbeat = time.Millisecond })
	id := w.begin(api.TurnSpec{})
	done := w.runLater(w.ctx(), id, callOf("held", "work", fakeArgs{Hold: true}))
	call := w.fakes.await(t, "held", true)
	conn := w.dial("GET /api/turns/" + id + "/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	for beats, in := 0, bufio.NewReader(conn); beats < 3; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": heartbeat\n" {
			beats++
		}
	}
	close(call.letGo)
	w.wait(done)
}

func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.MaxStreams = 1 })
	id := w.begin(api.TurnSpec{})
	w.dial("GET /api/turns/" + id + "/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	until(t, "the stream", func() bool { return w.server.streams.open() == 1 })
	for _, test := range [][3]string{{"GET", "/api/turns/" + id + "/events", ""}, {"POST", "/api/turns", "{}"}, {"POST", "/api/turns/" + id + "/calls", `{"calls":[]}`}} {
		if status, body := w.send(test[0], test[1], test[2], "Accept", eventStream); status != http.StatusServiceUnavailable {
			t.Errorf("%s %s: %d %s", test[0], test[1], status, body)
		}
	}
	if len(w.turns.Active()) != 1 {
		t.Error("a turn without its stream is left")
	}
}

// Many watchers of one turn all see all of it.
func TestManyWatchers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	const watchers = 200
	var seen sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), hangLimit)
	defer cancel()
	for range watchers {
		seen.Go(func() {
			last := int64(0)
			err := w.client.Watch(ctx, id, 0, func(e api.Record) bool {
				if e.Seq != last+1 {
					t.Errorf("event %d after %d", e.Seq, last)
				}
				last = e.Seq
				return true
			})
			if err != nil || last < 100 {
				t.Errorf("last %d, %v", last, err)
			}
		})
	}
	until(t, "the watchers", func() bool { return w.server.streams.open() == watchers })
	if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf("1", "work", fakeArgs{Chatter: 100})}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	seen.Wait()
}

// The end of the daemon ends streams, and turns that live by one.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s, err := w.client.Open(w.ctx(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	done := w.runLater(w.ctx(), first.TurnID, callOf("held", "work", fakeArgs{Hold: true}))
	w.fakes.await(t, "held", true)
	w.server.Close()
	if r := w.wait(done); r.err != nil || r.results[0].Status != api.StatusCancelled {
		t.Errorf("%+v", r)
	}
	until(t, "the end of the stream", func() bool { return w.server.streams.open() == 0 })
}
