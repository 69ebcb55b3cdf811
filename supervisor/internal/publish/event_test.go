package publish

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
		for range 100 {
			p.Written("stdout", make([]byte, 3*chunk))
		}
		told := len(events)
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

// What is longer than an event is in several, of whole characters.
func TestTextIsSplit(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "short": 1, strings.Repeat("x", maxEventBytes): 1, strings.Repeat("x", maxEventBytes-1) + "éé": 2,
		"x" + strings.Repeat("é", 2*maxEventBytes): 5, "a\xffb": 1, strings.Repeat("a\xff", maxEventBytes): 4,
	} {
		events := make(chan api.Event, 10)
		p := New(events, "c", "", 0)
		p.Publish(api.Event{Kind: api.EventStarted})
		<-events
		if in != "" {
			p.Written("stdout", []byte(in))
			p.Ended("stdout")
		}
		var got strings.Builder
		n := len(events)
		for range n {
			e := <-events
			if len(e.Content.Text) > maxEventBytes || !utf8.ValidString(e.Content.Text) || e.Missed > 0 || e.Content.LeftOutBytes > 0 {
				t.Errorf("%d bytes %.10q: an event of %d bytes", len(in), in, len(e.Content.Text))
			}
			got.WriteString(e.Content.Text)
		}
		if n != want || got.String() != strings.ToValidUTF8(in, "\uFFFD") {
			t.Errorf("%d bytes %.10q: %d bytes in %d events", len(in), in, got.Len(), n)
		}
	}
}

// A character is published whole, wherever a read has ended in it; one without its rest
// is, once the stream has ended.
func TestCharactersAreWhole(t *testing.T) {
	const in = "né 日本 😀\xe6\x97"
	for size := 1; size <= 5; size++ {
		events := make(chan api.Event, 100)
		p := New(events, "c", "", 0)
		p.Publish(api.Event{Kind: api.EventStarted})
		<-events
		for piece := range slices.Chunk([]byte(in), size) {
			p.Written("stdout", piece)
			p.Written("stderr", []byte("\xff"))
		}
		p.Ended("stdout")
		got := map[string]string{}
		for range len(events) {
			e := <-events
			got[e.Stream] += e.Content.Text
		}
		if want := strings.ToValidUTF8(in, "\uFFFD"); got["stdout"] != want || strings.Trim(got["stderr"], "\uFFFD") != "" {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// Content says how much an event leaves out of it; text goes on in the next one.
func TestContentOfEvents(t *testing.T) {
	long, raw := strings.Repeat("x", maxEventBytes+1), make([]byte, maxEventBytes+1)
	for name, test := range map[string]struct {
		in   api.Content
		want []api.Content
	}{
		"empty": {api.Content{Type: "text"}, []api.Content{{Type: "text"}}},
		"block": {
			api.Content{Type: "text", Text: long, Block: true, Extra: []byte("{}")},
			[]api.Content{{Type: "text", Text: long[:maxEventBytes-2], Block: true, Extra: []byte("{}")}, {Type: "text", Text: "xxx"}},
		},
		"further fields": {
			api.Content{Type: "text", Text: "x", Block: true, Extra: raw},
			[]api.Content{{Type: "text", Block: true, LeftOutBytes: maxEventBytes + 1}, {Type: "text", Text: "x"}},
		},
		"json":     {api.Content{Type: "json", JSON: raw}, []api.Content{{Type: "json", LeftOutBytes: maxEventBytes + 1}}},
		"blob":     {api.Content{Type: "blob", Data: raw, MIMEType: "a/b"}, []api.Content{{Type: "blob", MIMEType: "a/b", LeftOutBytes: maxEventBytes + 1}}},
		"resource": {api.Content{Type: "resource", Text: long, URI: "u"}, []api.Content{{Type: "resource", Text: long[1:], URI: "u", LeftOutBytes: 1}}},
	} {
		events := make(chan api.Event, 10)
		p := New(events, "c", "", 0)
		p.Publish(api.Event{Kind: api.EventStarted})
		<-events
		p.Output("content", test.in)
		close(events)
		var got []api.Content
		for e := range events {
			got = append(got, *e.Content)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: told %.200q", name, fmt.Sprintf("%+v", got))
		}
	}
}
