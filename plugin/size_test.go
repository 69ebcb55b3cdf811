package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func TestContentThatNoHostTakesIsNotSent(t *testing.T) {
	var r record
	out := NewOutput(r.send)
	for err, want := range map[error]string{
		out.Blob("a/b", make([]byte, 5<<20)):         "a blob of 5242880 bytes is more than fits one message, which has at most 4194304 with what is around it: send it in several parts, or write it to a file",
		out.JSON(strings.Repeat("x", 4<<20)):         "a JSON value of 4194306 bytes is more than",
		out.Log(strings.Repeat("x", 4<<20)):          "a message of ",
		out.Link(strings.Repeat("x", 4<<20), "", ""): "a message of ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(r.events) > 0 {
		t.Fatalf("%d messages were sent", len(r.events))
	}
	// What comes after is not held up, nor is there a gap in the numbers.
	if err := errors.Join(out.Text(strings.Repeat("x", 5<<20)), out.Blob("a/b", make([]byte, maxMessageBytes-64))); err != nil {
		t.Fatal(err)
	}
	for i, event := range r.events {
		if event.GetSeq() != uint64(i+1) || proto.Size(event) > maxMessageBytes {
			t.Errorf("message %d has number %d and %d bytes", i, event.GetSeq(), proto.Size(event))
		}
	}
}

func TestAResultThatNoHostTakesIsAnError(t *testing.T) {
	ctx, huge := t.Context(), bytes.Repeat([]byte("x"), 5<<20)
	for name, test := range map[string]struct {
		do   func() (string, error)
		want string
	}{
		"result":  {func() (string, error) { return string(huge), nil }, "the result of 5242882 bytes is more than the 4193280 that one message may have: return less"},
		"largest": {func() (string, error) { return string(huge[:maxResultBytes-2]), nil }, ""},
		"error":   {func() (string, error) { return "", errors.New(string(huge)) }, "xxx..."},
		"panic":   {func() (string, error) { panic(string(huge)) }, "xxx..."},
	} {
		x := NewTool(Tool{Name: "x"}, func(context.Context, query, *Output) (string, error) { return test.do() })
		result := runTool(ctx, x, nil, NewOutput(func(*pluginv1.CallEvent) error { return nil }))
		event := &pluginv1.CallEvent{Seq: 1 << 60, Event: &pluginv1.CallEvent_Result{Result: result}}
		if size := proto.Size(event); size > maxMessageBytes {
			t.Errorf("%s: %d bytes", name, size)
		}
		if message := result.GetError().GetMessage(); (message == "") != (test.want == "") || !strings.Contains(message, test.want) {
			t.Errorf("%s: %s", name, fmt.Sprintf("%.200q", message))
		}
	}
}
