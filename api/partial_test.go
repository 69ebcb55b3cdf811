package api

import (
	"strings"
	"testing"
)

func outputEvent(stream string, c Content) Event {
	return Event{Kind: EventOutput, Stream: stream, Content: &c}
}

// Text that goes on is one piece, whatever the events it came in; all other pieces stay what they were.
func TestPartialJoinsText(t *testing.T) {
	t.Parallel()
	var p Partial
	for _, c := range []Content{
		{Type: "text", Text: "a"},
		{Type: "text", Text: "b"},
		{Type: "json", JSON: []byte("1")},
		{Type: "text", Text: "c"},
		{Type: "text", Text: "d", Block: true},
		{Type: "text", Text: "e"},
	} {
		p.Take(outputEvent("content", c))
	}
	p.Take(outputEvent("stdout", Content{Type: "text", Text: "out"}))
	p.Take(outputEvent("stderr", Content{Type: "text", Text: "err"}))
	var r Result
	p.Fill(&r)
	var got []string
	for _, c := range r.Content {
		got = append(got, c.Text+string(c.JSON))
	}
	if strings.Join(got, " ") != "ab 1 c d e" || r.Output.Stdout.Head != "out" || r.Output.Stderr.Head != "err" || !r.Partial || p.Cut() {
		t.Errorf("%q, %+v", got, r.Output)
	}
	if want := (ContentOutput{SeenBytes: 6, KeptBytes: 6}); r.Output.Content != want {
		t.Errorf("counted %+v, want %+v", r.Output.Content, want)
	}
}

// What does not fit is counted, and what came first is kept.
func TestPartialIsBounded(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"content", "stdout", "stderr"} {
		var p Partial
		p.Take(outputEvent(stream, Content{Type: "text", Text: "first"}))
		p.Take(outputEvent(stream, Content{Type: "text", Text: strings.Repeat("x", maxPartialBytes)}))
		p.Take(outputEvent(stream, Content{Type: "text", Text: "last"}))
		var r Result
		p.Fill(&r)
		kept := r.Output.Stdout.Head + r.Output.Stderr.Head
		for _, c := range r.Content {
			kept += c.Text
		}
		dropped := r.Output.Content.DroppedBytes + r.Output.Stdout.DroppedBytes + r.Output.Stderr.DroppedBytes
		if kept != "first" || dropped != maxPartialBytes+4 || !p.Cut() {
			t.Errorf("%s: kept %d bytes, dropped %d", stream, len(kept), dropped)
		}
	}
	var p Partial
	for range maxPartialPieces + 1 {
		p.Take(outputEvent("content", Content{Type: "json", JSON: []byte("1")}))
	}
	var r Result
	if p.Fill(&r); len(r.Content) != maxPartialPieces || r.Output.Content.DroppedBytes != 1 {
		t.Errorf("%d pieces, %+v", len(r.Content), r.Output.Content)
	}
	p = Partial{}
	p.Take(outputEvent("content", Content{Type: "json", JSON: []byte("1")}))
	for range maxPartialPieces {
		p.Take(outputEvent("content", Content{Type: "text", Text: "x"}))
		p.Take(outputEvent("content", Content{Type: "json", JSON: []byte("1")}))
	}
	if p.Fill(&r); len(r.Content) > maxPartialPieces+1 {
		t.Errorf("%d pieces of two kinds", len(r.Content))
	}
}

func TestPartialOfNothing(t *testing.T) {
	t.Parallel()
	var p Partial
	p.Take(Event{Kind: EventStarted, Missed: 2})
	if said := p.Arrived(); said != "No output of it has arrived." { // questions may have
		t.Errorf("it says %q", said)
	}
	r := Result{Content: []Content{}}
	if p.Fill(&r); r.Partial || r.Content == nil || p.Missed != 2 || !p.Cut() {
		t.Errorf("%+v, missed %d", r, p.Missed)
	}
}

// A piece of which its event has only a part is left out, and counted.
func TestPartialHasWholePieces(t *testing.T) {
	t.Parallel()
	var p Partial
	p.Take(outputEvent("content", Content{Type: "text", Text: "first"}))
	p.Take(outputEvent("content", Content{Type: "json", LeftOutBytes: 20}))
	var r Result
	p.Fill(&r)
	if want := (ContentOutput{SeenBytes: 25, KeptBytes: 5, DroppedBytes: 20}); len(r.Content) != 1 || r.Output.Content != want || !p.Cut() {
		t.Errorf("%+v, %+v", r.Content, r.Output.Content)
	}
}
