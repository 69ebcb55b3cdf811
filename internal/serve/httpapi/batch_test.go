package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestABatchAsAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{TurnID: "t"})
	status, body := w.send("POST", "/api/turns/t/calls", `{"calls":[{"id":"1","tool":"work","arguments":{"say":"x","chatter":3}}]}`, "Accept", "text/html, "+eventStream)
	want := []string{"tool_queued", "tool_started", "tool_output", "tool_output", "tool_output", "tool_finished", "results"}
	if kinds := kindsOf(body); status != 200 || !slices.Equal(kinds[len(kinds)-len(want):], want) {
		t.Errorf("%d, kinds %q, want %q at the end", status, kinds, want)
	}
	var seqs []int64
	results, err := w.client.RunEvents(w.ctx(), id, []api.Call{callOf("2", "work", fakeArgs{Chatter: 2000})}, func(e api.Record) { seqs = append(seqs, e.Seq) })
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %+v", err, results)
	}
	wantSteps(t, seqs)
	if results, err := w.client.RunEvents(w.ctx(), id, nil, func(api.Record) {}); err != nil || len(results) != 0 {
		t.Errorf("empty batch: %v, %v", err, results)
	}
}

// kindsOf are the kinds of a stream's events.
func kindsOf(stream string) (kinds []string) {
	for line := range strings.Lines(stream) {
		if kind, is := strings.CutPrefix(line, "event: "); is {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	return kinds
}

// A batch that is streamed begins with its own events, however close it follows
// the one before.
func TestABatchStreamsItsOwnEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	for i := range 30 {
		before, own := fmt.Sprint("before", i), fmt.Sprint("own", i)
		if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf(before, "work", fakeArgs{Chatter: 200})}); err != nil {
			t.Fatal(err)
		}
		var of []string
		if _, err := w.client.RunEvents(w.ctx(), id, []api.Call{callOf(own, "work", fakeArgs{})}, func(e api.Record) { of = append(of, e.CallID) }); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(of, before) || !slices.Contains(of, own) {
			t.Fatalf("events of %q", of)
		}
	}
}
