package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/internal/plugin/rpc"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func text(seq uint64) *pluginv1.CallEvent {
	return contentEvent(seq, &pluginv1.Content{Content: &pluginv1.Content_Text{Text: "x"}})
}

func jsonContent(raw string) *pluginv1.Content {
	return &pluginv1.Content{Content: &pluginv1.Content_Json{Json: []byte(raw)}}
}

func contentEvent(seq uint64, c *pluginv1.Content) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Seq: seq, Event: &pluginv1.CallEvent_Content{Content: c}}
}

func askEvent(seq uint64, schema string) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Seq: seq, Event: &pluginv1.CallEvent_Ask{Ask: &pluginv1.Ask{Schema: []byte(schema)}}}
}

func final(seq uint64, structured string, content ...*pluginv1.Content) *pluginv1.CallEvent {
	return &pluginv1.CallEvent{Seq: seq, Event: &pluginv1.CallEvent_Result{
		Result: &pluginv1.Result{Structured: []byte(structured), Content: content},
	}}
}

func TestEventChecker(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []*pluginv1.CallEvent
		reason string // of the last event's refusal, or of the end's; "" for a sound stream
	}{
		{"result only", []*pluginv1.CallEvent{final(1, "")}, ""},
		{"content and result", []*pluginv1.CallEvent{text(1), contentEvent(2, jsonContent(`[1]`)), final(3, `{}`, jsonContent("2"))}, ""},
		{"ask", []*pluginv1.CallEvent{askEvent(1, ""), askEvent(2, "{}"), final(3, "")}, ""},
		{"nothing", nil, "the stream ended without a result"},
		{"no result", []*pluginv1.CallEvent{text(1)}, "the stream ended without a result"},
		{"two results", []*pluginv1.CallEvent{final(1, ""), final(2, "")}, "a second result"},
		{"data after the result", []*pluginv1.CallEvent{final(1, ""), text(2)}, "data after the result"},
		{"seq from 0", []*pluginv1.CallEvent{text(0)}, "event 0 came after event 0"},
		{"seq from 2", []*pluginv1.CallEvent{text(2)}, "event 2 came after event 0"},
		{"seq repeated", []*pluginv1.CallEvent{text(1), text(1)}, "event 1 came after event 1"},
		{"seq with a gap", []*pluginv1.CallEvent{text(1), final(3, "")}, "event 3 came after event 1"},
		{"unknown event", []*pluginv1.CallEvent{text(1), {Seq: 2}}, "event 2 holds nothing that this host knows"},
		{"unknown content", []*pluginv1.CallEvent{contentEvent(1, &pluginv1.Content{})}, "content of no kind"},
		{"absent content", []*pluginv1.CallEvent{contentEvent(1, nil)}, "content of no kind"},
		{"unknown content in a result", []*pluginv1.CallEvent{final(1, "", nil)}, "content of no kind"},
		{"empty JSON", []*pluginv1.CallEvent{contentEvent(1, jsonContent(""))}, "JSON content is empty"},
		{"bad JSON", []*pluginv1.CallEvent{contentEvent(1, jsonContent("{"))}, "JSON content is not valid JSON"},
		{"bad JSON in a result", []*pluginv1.CallEvent{final(1, "", jsonContent("1"), jsonContent("1 2"))}, "JSON content is not valid JSON"},
		{"bad structured result", []*pluginv1.CallEvent{final(1, "{]")}, "the structured result is not valid JSON"},
		{"JSON that is not UTF-8", []*pluginv1.CallEvent{contentEvent(1, jsonContent("\"\xff\""))}, "JSON content is not UTF-8"},
		{"structured result that is not UTF-8", []*pluginv1.CallEvent{final(1, "{\"x\":\"\xff\"}")}, "the structured result is not UTF-8"},
		{"bad schema", []*pluginv1.CallEvent{askEvent(1, "{]")}, "an ask's schema is not valid JSON"},
	} {
		var seen int
		err := check(played(test.events, io.EOF), func(event *pluginv1.CallEvent) {
			if event != test.events[seen] {
				t.Errorf("%s: sink got %v out of order", test.name, event)
			}
			seen++
		})
		if test.reason == "" {
			if err != nil || seen != len(test.events) {
				t.Errorf("%s: %v after %d events", test.name, err, seen)
			}
			continue
		}
		if broken, ok := errors.AsType[*ProtocolError](err); !ok || !strings.Contains(broken.Reason, test.reason) {
			t.Errorf("%s: %v, want %q", test.name, err, test.reason)
		}
		if want := len(test.events) - 1; len(test.events) > 0 && !strings.Contains(test.reason, "without") && seen != want {
			t.Errorf("%s: sink got %d events, want the %d sound ones", test.name, seen, want)
		}
	}
}

// fuzzKinds are the events of FuzzEventChecker, and whether they are sound by
// themselves.
var fuzzKinds = []struct {
	event func(seq uint64) *pluginv1.CallEvent
	sound bool
}{
	{text, true},
	{func(seq uint64) *pluginv1.CallEvent { return final(seq, "") }, true},
	{func(seq uint64) *pluginv1.CallEvent { return final(seq, "{}", jsonContent("1")) }, true},
	{func(seq uint64) *pluginv1.CallEvent { return askEvent(seq, "{}") }, true},
	{func(seq uint64) *pluginv1.CallEvent { return contentEvent(seq, jsonContent("null")) }, true},
	{func(seq uint64) *pluginv1.CallEvent {
		return &pluginv1.CallEvent{Seq: seq, Event: &pluginv1.CallEvent_Heartbeat{}}
	}, true},
	{func(seq uint64) *pluginv1.CallEvent { return &pluginv1.CallEvent{Seq: seq} }, false},
	{func(seq uint64) *pluginv1.CallEvent { return final(seq, "{") }, false},
	{func(seq uint64) *pluginv1.CallEvent { return contentEvent(seq, jsonContent("")) }, false},
	{func(seq uint64) *pluginv1.CallEvent { return contentEvent(seq, nil) }, false},
	{func(seq uint64) *pluginv1.CallEvent { return askEvent(seq, "x") }, false},
}

// FuzzEventChecker makes one event of each byte: its kind from the low nibble,
// an error in its seq from the highest values of the high one.
func FuzzEventChecker(f *testing.F) {
	for _, s := range []string{"", "\x00\x01", "\x00\x05\x03\x02", "\x01\x01", "\x01\x00", "\x00\xf1", "\x00\xe1", "\x00\xd0", "\x00\x06"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		var checker eventChecker
		results := 0
		for i, b := range program {
			seq := uint64(i) + 1
			switch b >> 4 {
			case 13:
				seq--
			case 14:
				seq++
			case 15:
				seq = 0
			}
			kind := fuzzKinds[int(b&15)%len(fuzzKinds)]
			event := kind.event(seq)
			sound := kind.sound && seq == uint64(i)+1 && results == 0
			err := checker.check(event)
			if (err == nil) != sound {
				t.Fatalf("event %d of %x: %v, sound is %v", i, program, err, sound)
			}
			if err != nil {
				if _, ok := errors.AsType[*ProtocolError](err); !ok {
					t.Fatalf("error of type %T", err)
				}
				return
			}
			if event.GetResult() != nil {
				results++
			}
		}
		if err := checker.ended(); (err == nil) != (results == 1) {
			t.Fatalf("end of %x: %v with %d results", program, err, results)
		}
	})
}

func TestExplainStatus(t *testing.T) {
	broken := func(reason string) error { return &ProtocolError{reason} }
	for _, test := range []struct {
		err  error
		want error
	}{
		{rpc.Errorf(codes.Unavailable, "x"), ErrDisconnected},
		{rpc.Errorf(codes.Canceled, "x"), ErrDisconnected},
		{rpc.Errorf(codes.Aborted, "x"), ErrDisconnected},
		{rpc.Errorf(codes.ResourceExhausted, "x"), broken("a message is too large: x")},
		{rpc.Errorf(codes.Unimplemented, "x"), broken("the binary does not serve toolhost.plugin.v1: x")},
		{rpc.Errorf(codes.NotFound, "x"), broken("the tool answered with gRPC status NotFound: x")},
		{rpc.Errorf(codes.DeadlineExceeded, "x"), broken("the tool answered with gRPC status DeadlineExceeded: x")},
		{rpc.Errorf(codes.Internal, "x"), broken("the tool answered with gRPC status Internal: x")},
		{rpc.Errorf(codes.Code(99), "x"), broken("the tool answered with gRPC status Code(99): x")},
		{errors.New("x"), broken("the tool answered with gRPC status Unknown: x")},
	} {
		got := explainStatus(t.Context(), test.err)
		if fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", test.want, test.want) {
			t.Errorf("%v: %T %v, want %T %v", test.err, got, got, test.want, test.want)
		}
		ours := errors.New("we gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ours)
		if got := explainStatus(ctx, test.err); !errors.Is(got, ours) {
			t.Errorf("%v after our own end: %v", test.err, got)
		}
	}
}

func TestCallTellsABrokenConnection(t *testing.T) {
	gone := rpc.Errorf(codes.Unavailable, "EOF")
	for name, events := range map[string][]*pluginv1.CallEvent{"in mid-call": {text(1)}, "after the result": {final(1, "")}} {
		if err := check(played(events, gone), func(*pluginv1.CallEvent) {}); !errors.Is(explainStatus(t.Context(), err), ErrDisconnected) {
			t.Errorf("%s: %v", name, err)
		}
	}
	conn := connectTo(t, &sender{}, Options{})
	conn.client.Close()
	if err := conn.Call(t.Context(), &pluginv1.CallRequest{}, func(*pluginv1.CallEvent, time.Time) {}); !errors.Is(err, ErrDisconnected) {
		t.Errorf("before the stream: %v", err)
	}
	if _, err := conn.Describe(t.Context()); !errors.Is(err, ErrDisconnected) {
		t.Errorf("Describe: %v", err)
	}
}

// played gives the events, and then the end.
func played(events []*pluginv1.CallEvent, end error) func() (*pluginv1.CallEvent, error) {
	return func() (*pluginv1.CallEvent, error) {
		if len(events) == 0 {
			return nil, end
		}
		event := events[0]
		events = events[1:]
		return event, nil
	}
}

// The other side may see our deadline a moment before we do.
func TestDeadlineOnBothSides(t *testing.T) {
	over := errors.New("our time is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, over)
	defer cancel()
	if got := explainStatus(ctx, rpc.Errorf(codes.DeadlineExceeded, "x")); got != over {
		t.Errorf("%v, want %v", got, over)
	}
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, ok := errors.AsType[*ProtocolError](explainStatus(later, rpc.Errorf(codes.DeadlineExceeded, "x"))); !ok {
		t.Error("a tool's own word for it is taken for our deadline")
	}
}
