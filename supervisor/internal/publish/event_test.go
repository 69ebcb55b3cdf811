package publish

import (
	"math"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// Output is told of up to a bound; what is beyond is counted by the next event.
func TestEventOutputIsBounded(t *testing.T) {
	const chunk = maxEventBytes
	for _, test := range []struct {
		limit        int64
		told, missed int
	}{{0, 252, 48}, {-1, 0, 300}, {2 * chunk, 1, 299}, {math.MaxInt64, 300, 0}} {
		events := make(chan api.Event, 400)
		p := New(events, "c", "", test.limit)
		p.Publish(api.Event{Kind: api.EventStarted})
		<-events
		told := 0
		for range 300 {
			if p.Tells(chunk + 1) {
				told++
				p.Publish(api.Event{Kind: api.EventOutput, Content: &api.Content{Type: "text", Text: TextBegin(make([]byte, chunk+1))}})
			}
		}
		p.Publish(api.Event{Kind: api.EventFinished})
		var last api.Event
		for range told + 1 {
			last = <-events
		}
		if told != test.told || last.Kind != api.EventFinished || last.Missed != test.missed {
			t.Errorf("limit %d: told %d, the last event %+v", test.limit, told, last)
		}
	}
}

// What is longer than an event is seen to be cut, at a whole character.
func TestTextOfAnEvent(t *testing.T) {
	for in, want := range map[string]string{
		"short": "short", strings.Repeat("x", maxEventBytes): strings.Repeat("x", maxEventBytes),
		strings.Repeat("x", maxEventBytes-1) + "éé": strings.Repeat("x", maxEventBytes-1) + "…",
		"a\xffb": "a\uFFFDb",
	} {
		if got := cutText(TextBegin([]byte(in))); got != want {
			t.Errorf("%d bytes %.10q: %d bytes ending in %q", len(in), in, len(got), got[max(len(got)-8, 0):])
		}
	}
}
