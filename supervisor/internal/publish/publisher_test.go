package publish

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

func said(stream, text string) api.Event {
	return api.Event{Kind: api.EventOutput, Stream: stream, Content: &api.Content{Type: "text", Text: text}}
}

// told gives what a reader has been sent, as words.
func told(events chan api.Event) (words []string) {
	for len(events) > 0 {
		e := <-events
		word := strings.TrimPrefix(string(e.Kind), "tool_")
		if e.Content != nil {
			word += " " + e.Stream + " " + e.Content.Text
		}
		words = append(words, word)
	}
	return words
}

// Whatever a tool does while it starts is told behind the word that it has.
func TestStartedComesFirst(t *testing.T) {
	for end, want := range map[api.EventKind][]string{
		api.EventStarted: {"queued", "started", "output stderr ab", "output stdout c", "overran"},
		api.EventTimeout: {"queued", "output stderr ab", "output stdout c", "overran", "timeout"},
		api.EventFailed:  {"queued", "output stderr ab", "output stdout c", "overran", "failed"},
	} {
		events := make(chan api.Event, 20)
		p := New(events, "c", "", 0)
		for _, e := range []api.Event{{Kind: api.EventQueued}, said("stderr", "a"), said("stderr", "b"), said("stdout", "c"), {Kind: api.EventOverran}, {Kind: end}, said("stderr", "d")} {
			p.Publish(e)
		}
		if got := told(events); !slices.Equal(got, append(want, "output stderr d")) {
			t.Errorf("%s: told %q", end, got)
		}
	}
}

// What is held back of a tool that starts is bounded, and what does not go with
// the last of it is counted.
func TestEarlyOutputIsBounded(t *testing.T) {
	events := make(chan api.Event, 100)
	p := New(events, "c", "", 0)
	for i := range 2 * maxEarly {
		p.Publish(said([]string{"stdout", "stderr"}[i%2], "x"))
	}
	p.Publish(api.Event{Kind: api.EventStarted})
	if first := <-events; first.Kind != api.EventStarted || first.Missed != maxEarly/2 || len(events) != maxEarly {
		t.Errorf("%+v, and %d more", first, len(events))
	}
}

// A tool that never stops talking of its progress fills no journal.
func TestNotesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan api.Event, 10_000)
		p := New(events, "c", "", 0)
		p.Publish(api.Event{Kind: api.EventStarted})
		<-events
		burst := func() (told int) {
			for range 1000 {
				p.Note(api.Event{Kind: api.EventLog, Message: strings.Repeat("x", maxEventBytes)})
			}
			for ; len(events) > 0; told++ {
				<-events
			}
			return told
		}
		if n := burst(); n < 10 || n > 20 {
			t.Errorf("%d of 1000 were told", n)
		}
		time.Sleep(8 * time.Second)
		if n := burst(); n < 1 || n > 4 {
			t.Errorf("%d of 1000 were told after 8 s", n)
		}
		time.Sleep(time.Hour)
		if n := burst(); n < 10 || n > 20 {
			t.Errorf("%d of 1000 were told after an hour", n)
		}
		time.Sleep(time.Minute)
		p.Note(api.Event{Kind: api.EventProgress})
		if e := <-events; e.Kind != api.EventProgress || e.Missed < 900 {
			t.Errorf("%+v, with no word of what was missed", e)
		}
	})
}
