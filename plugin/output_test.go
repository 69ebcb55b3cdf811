package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func TestEveryKindOfOutput(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	written, err := out.Write([]byte("written"))
	if written != 7 || err != nil {
		t.Errorf("Write: %d, %v", written, err)
	}
	for i, err := range []error{
		out.Textf("%d of %d", 1, 2), out.JSON(map[string]int{"a": 1}), out.Blob("image/png", []byte{0xff}),
		out.Link("file:///x", "x", "text/plain"), out.Heartbeat(), out.Log("l\xff"),
		out.Progress(0.5, "half\xff"), out.Progress(7, ""), out.Progress(-1, ""), out.Progress(math.NaN(), ""),
	} {
		if err != nil {
			t.Errorf("output %d: %v", i, err)
		}
	}
	text := func(s string) *pluginv1.CallEvent {
		return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: s}}}}
	}
	progress := func(p *pluginv1.Progress) *pluginv1.CallEvent {
		return &pluginv1.CallEvent{Event: &pluginv1.CallEvent_Progress{Progress: p}}
	}
	want := []*pluginv1.CallEvent{
		text("written"),
		text("1 of 2"),
		{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Json{Json: []byte(`{"a":1}`)}}}},
		{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Blob{
			Blob: &pluginv1.Blob{MimeType: "image/png", Data: []byte{0xff}},
		}}}},
		{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Link{
			Link: &pluginv1.ResourceLink{Uri: "file:///x", Name: "x", MimeType: "text/plain"},
		}}}},
		{Event: &pluginv1.CallEvent_Heartbeat{Heartbeat: &pluginv1.Heartbeat{}}},
		{Event: &pluginv1.CallEvent_Log{Log: &pluginv1.Log{Level: pluginv1.Log_LEVEL_INFO, Message: "l\uFFFD"}}},
		progress(&pluginv1.Progress{Fraction: new(0.5), Message: "half\uFFFD"}),
		progress(&pluginv1.Progress{Fraction: new(1.0)}),
		progress(&pluginv1.Progress{}),
		progress(&pluginv1.Progress{}),
	}
	got := r.all()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		want[i].Seq = uint64(i) + 1
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("got  %v\nwant %v", got[i], want[i])
		}
	}
}

func TestJSONThatDoesNotEncodeSendsNothing(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	if err := out.JSON(math.Inf(1)); err == nil || !strings.Contains(err.Error(), "cannot encode content") {
		t.Errorf("error %v", err)
	}
	if err := out.Text("a"); err != nil {
		t.Error(err)
	}
	if events := r.all(); len(events) != 1 || events[0].GetSeq() != 1 {
		t.Errorf("events %v", events)
	}
}

// The slice is written without a lock of its own: Output promises to send one
// message at a time.
func TestConcurrentOutputIsNumberedInTheOrderOfSending(t *testing.T) {
	const writers, each = 8, 50
	var sent []*pluginv1.CallEvent
	out := NewOutput(func(event *pluginv1.CallEvent) error {
		sent = append(sent, event)
		return nil
	})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if err := out.Textf("%d %d", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var next [writers]int
	for i, event := range sent {
		if event.GetSeq() != uint64(i)+1 {
			t.Fatalf("message %d has seq %d", i+1, event.GetSeq())
		}
		var w, n int
		if _, err := fmt.Sscan(event.GetContent().GetText(), &w, &n); err != nil || n != next[w] {
			t.Fatalf("message %q of a writer whose next is %d (%v)", event.GetContent().GetText(), next[w], err)
		}
		next[w]++
	}
	if len(sent) != writers*each {
		t.Errorf("%d messages, want %d", len(sent), writers*each)
	}
}

// What is copied keeps its characters, wherever its reads end.
func TestWritesThatSplitCharacters(t *testing.T) {
	const all = "a\u00e4\u20ac\U0001f600"
	for _, test := range []struct{ name, text, want string }{
		{"sound", all + all, all + all},
		{"cut off", all[:len(all)-1], "a\u00e4\u20ac\uFFFD"},
		{"broken", "\xe2\x82x\xff\u00e4\x82", "\uFFFDx\uFFFD\u00e4\uFFFD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r record
			out := NewOutput(r.send)
			if _, err := io.Copy(struct{ io.Writer }{out}, iotest.OneByteReader(strings.NewReader(test.text))); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(out.Heartbeat(), out.Text(" end")); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.texts(), ""); got != test.want+" end" {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A result comes behind what was written, and other goroutines' heartbeats split nothing.
func TestASplitCharacterWaits(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	for _, b := range []byte("\u20ac\xc3") {
		if _, err := out.Write([]byte{b}); err != nil || out.Heartbeat() != nil {
			t.Fatal(err)
		}
	}
	out.close(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{}}})
	events := r.all()
	if got := strings.Join(r.texts(), ""); got != "\u20ac\uFFFD" || events[len(events)-1].GetResult() == nil {
		t.Errorf("%q, %v", got, events)
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	const limit = 256 << 10
	full := strings.Repeat("x", limit)
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"short", "héllo", []string{"héllo"}},
		{"exactly one message", full, []string{full}},
		{"one byte more", full + "y", []string{full, "y"}},
		{"two messages", full + full, []string{full, full}},
		{"two bytes across the cut", full[1:] + "é!", []string{full[1:], "é!"}},
		{"two bytes before the cut", full[2:] + "é!", []string{full[2:] + "é", "!"}},
		{"four bytes, one before the cut", full[1:] + "😀", []string{full[1:], "😀"}},
		{"four bytes, three before the cut", full[3:] + "😀", []string{full[3:], "😀"}},
		{"four bytes before the cut", full[4:] + "😀", []string{full[4:] + "😀"}},
		{"no UTF-8", "a\xffb\xc3", []string{"a\uFFFDb\uFFFD"}},
		{"grown by replacement", full[1:] + "\xff", []string{full[1:], "\uFFFD"}},
	} {
		var r record
		if err := NewOutput(r.send).Text(test.text); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := r.texts(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %d pieces, want %d, or other cuts", test.name, len(got), len(test.want))
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("aé😀b", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		s, limit = strings.ToValidUTF8(s, "\uFFFD"), 4+int(uint(limit)%16)
		for s != "" {
			piece := cut(s, limit)
			_, next := utf8.DecodeRuneInString(s[len(piece):])
			switch {
			case len(piece) == 0 || len(piece) > limit || !utf8.ValidString(piece):
				t.Fatalf("cut(%q, %d) = %q", s, limit, piece)
			case piece != s && len(piece)+next <= limit:
				t.Fatalf("cut(%q, %d) = %q, not the longest", s, limit, piece)
			}
			s = s[len(piece):]
		}
	})
}

func TestFlushReturnsOnceItsOwnNumberIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		out := NewOutput(r.send)
		if err := out.Text("a"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- out.Flush(t.Context()) }()
		synctest.Wait()
		if last := r.all()[1]; last.GetFlush() == nil || last.GetSeq() != 2 {
			t.Fatalf("sent %v", last)
		}
		out.acks.store(1)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("returned with %v before its own number was stored", err)
		default:
		}
		out.acks.store(2)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFlushIsServedByALaterNumberAndNotUndoneByAnEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput(new(record).send)
		out.acks.store(2)
		out.acks.store(1)
		for range 2 {
			if err := out.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := out.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("third flush: %v, though only 2 are stored", err)
		}
	})
}

func TestOneAcknowledgeWakesEveryFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput(new(record).send)
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if err := out.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		out.acks.store(5)
		group.Wait()
	})
}

func TestFlushEndsWithTheContextsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput(new(record).send)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- out.Flush(ctx) }()
		synctest.Wait()
		cancel(ErrDeadline)
		if err := <-done; !errors.Is(err, ErrDeadline) {
			t.Errorf("error %v", err)
		}
	})
}

func TestAFailedSendIsFinal(t *testing.T) {
	sends := 0
	out := NewOutput(func(*pluginv1.CallEvent) error {
		if sends++; sends == 2 {
			return io.ErrClosedPipe
		}
		return nil
	})
	if err := out.Text("arrives"); err != nil {
		t.Fatal(err)
	}
	_, writeErr := out.Write([]byte("x"))
	_, askErr := out.Ask(t.Context(), Question{})
	for i, err := range []error{
		writeErr, askErr, out.Text("x"), out.JSON(1), out.Blob("", nil), out.Link("", "", ""),
		out.Progress(0, ""), out.Heartbeat(), out.Log(""), out.Flush(t.Context()),
	} {
		if !errors.Is(err, ErrConnection) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("method %d: %v", i, err)
		}
	}
	if sends != 2 {
		t.Errorf("%d sends, want none after the failed one", sends)
	}
}

func TestNothingIsSentAfterTheEnd(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	out.close(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{}}})
	for i, err := range []error{out.Text("x"), out.Heartbeat(), out.Flush(t.Context())} {
		if !errors.Is(err, errEnded) || errors.Is(err, ErrConnection) {
			t.Errorf("method %d: %v", i, err)
		}
	}
	if events := r.all(); len(events) != 1 || events[0].GetResult() == nil {
		t.Errorf("events %v", events)
	}
}
