package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/turn"
)

// Sizes of what a tool with much to say brings.
const (
	largeEvent  = 16 << 10
	largeResult = 2 << 20
)

// tally checks that a reader is told of every event once and in order: of each
// by itself or by the gap that it is in.
type tally struct {
	t          testing.TB
	last       int64
	events     int
	gaps, lost int64
}

func (c *tally) take(e api.Record) bool {
	from := e.Seq
	if e.Gap != nil {
		from = e.Gap.From
		c.gaps++
		c.lost += e.Gap.To - e.Gap.From + 1
		if e.Gap.To < e.Gap.From || e.Seq != e.Gap.To {
			c.t.Errorf("gap %+v, seq %d", e.Gap, e.Seq)
		}
	} else {
		c.events++
	}
	if from != c.last+1 {
		c.t.Errorf("event %d after %d", from, c.last)
	}
	c.last = e.Seq
	return e.Kind != api.EventTurnEnd
}

// withAndWithout runs a test on a daemon with a journal, and on one without.
func withAndWithout(t *testing.T, test func(w *world, kept bool)) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("journal=%t", kept), func(t *testing.T) {
			test(newWorld(t, func(c *Config) {
				c.Stall = hangLimit // a client that pauses here is not one that has gone
				if !kept {
					c.History = nil
				}
			}), kept)
		})
	}
}

// end ends a turn and checks that a watcher from its beginning is told of all.
func (w *world) end(id string, last int64, kept bool) {
	w.t.Helper()
	late := &tally{t: w.t}
	done := make(chan error, 1)
	go func() { done <- w.client.Watch(w.ctx(), id, 0, late.take) }()
	until(w.t, "the late watcher", func() bool { return w.server.streams.open() == 1 })
	if err := w.client.End(w.ctx(), id); err != nil {
		w.t.Error(err)
	}
	if err := <-done; err != nil || late.last < last || kept && late.gaps > 0 {
		w.t.Errorf("a late watcher was told of %d of %d events, %d gaps: %v", late.last, last, late.gaps, err)
	}
}

// A turn with more than any memory holds can be watched from its beginning,
// whoever has begun it, and nothing spins meanwhile or stays behind.
func TestWatchingMuchOutput(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	withAndWithout(t, func(w *world, kept bool) {
		for _, one := range []fakeArgs{{Chatter: 300, Size: largeEvent}, {Chatter: 3, Result: largeResult}} {
			foreign, err := w.turns.Begin(turn.Spec{})
			if err != nil {
				w.t.Fatal(err)
			}
			own := w.begin(api.TurnSpec{})
			for i := range 4 {
				call := callOf(fmt.Sprint(i), "work", one)
				if _, err := foreign.Run(w.ctx(), []turn.Call{{ID: call.ID, Tool: call.Tool, Arguments: call.Arguments}}); err != nil {
					w.t.Fatal(err)
				}
				if _, err := w.client.Run(w.ctx(), own, []api.Call{call}); err != nil {
					w.t.Fatal(err)
				}
			}
			w.end(foreign.ID(), foreign.Newest(), kept)
			w.end(own, 8, kept)
		}
	})
}

// batchOf sends a batch by hand and gives the connection, unread.
func (w *world) batchOf(id string, call api.Call) net.Conn {
	w.t.Helper()
	raw, err := json.Marshal(api.Batch{Calls: []api.Call{call}})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.dial("POST /api/turns/" + url.PathEscape(id) + "/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: " +
		eventStream + "\r\nContent-Length: " + fmt.Sprint(len(raw)) + "\r\n\r\n" + string(raw))
}

// framesOf reads a batch's stream to its end: it gives what it was told of, and
// the kind of the last frame.
func (w *world) framesOf(conn net.Conn, c *tally) (last string) {
	w.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(hangLimit))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	in := bufio.NewReader(response.Body)
	var id, kind string
	var data []byte
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				w.t.Errorf("after event %d: %v", c.last, err)
			}
			return last
		}
		switch name, value := cutField(line); {
		case name == "id":
			id = value
		case name == "event":
			kind = value
		case name == "data":
			data = []byte(value)
		case line == "\n" && kind != "":
			if last = kind; id != "" {
				c.take(eventOf(w.t, kind, data))
			}
			id, kind = "", ""
		}
	}
}

func cutField(line string) (name, value string) {
	name, value, _ = strings.Cut(line, ":")
	return name, strings.TrimSpace(value)
}

func eventOf(t testing.TB, kind string, data []byte) (e api.Record) {
	var err error
	if kind == string(api.EventGap) {
		e.Gap = &api.Gap{}
		err = json.Unmarshal(data, e.Gap)
		e.Kind, e.Seq = api.EventGap, e.Gap.To
	} else {
		err = json.Unmarshal(data, &e.Event)
	}
	if err != nil {
		t.Errorf("%s: %v", kind, err)
	}
	return e
}

// A batch's client that pauses is told of everything all the same, by the event
// or by a gap with its bounds, and then of the results.
func TestAPausedBatchIsToldOfEverything(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	withAndWithout(t, func(w *world, kept bool) {
		for _, one := range []fakeArgs{{Chatter: 300, Size: largeEvent}, {Chatter: 40_000, Size: 300}, {Chatter: 3, Result: largeResult}} {
			id := w.begin(api.TurnSpec{})
			conn := w.batchOf(id, callOf("1", "work", one))
			w.awaitEnd(id)
			c := &tally{t: w.t, last: 1} // the turn's own beginning is before the batch
			if last := w.framesOf(conn, c); last != kindResults {
				w.t.Errorf("the last frame is of %q", last)
			}
			t, _ := w.turns.Turn(id)
			if c.last != t.Newest() || kept && c.gaps > 0 || !kept && one.Chatter > 3 && c.gaps == 0 {
				w.t.Errorf("told of %d events and %d gaps, of %d events, up to %d of %d", c.events, c.gaps, c.lost, c.last, t.Newest())
			}
			conn.Close()
			t.End()
		}
	})
}

// awaitEnd waits until the first call of a turn was made and is over.
func (w *world) awaitEnd(id string) {
	w.t.Helper()
	until(w.t, "the call's end", func() bool {
		t, ok := w.turns.Turn(id)
		if !ok {
			return true
		}
		info, _ := t.Info()
		return info.ToolCallCount == 1 && len(info.CurrentTools) == 0
	})
}
