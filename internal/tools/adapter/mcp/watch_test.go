package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// A host that watches is told that a server has ended between two calls: the next one knows
// nothing of what this one was to announce.
func TestTheEndOfAServerIsAnnounced(t *testing.T) {
	t.Parallel()
	a := server(t, "answers and dies")
	told := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error)
	go func() {
		watched <- a.Watch(ctx, func(method string, _ json.RawMessage) error {
			told <- method
			return nil
		})
	}()
	wait.Until(t, "it is watched", a.watched.Load)
	if _, o := call1(t, a, "x", "{}"); o.err != nil {
		t.Fatal(o.err)
	}
	if method := <-told; method != mcpcall.ServerEnded {
		t.Error(method)
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// What a server logs when no call runs is announced.
func TestLogsBetweenCallsAreAnnounced(t *testing.T) {
	t.Parallel()
	a := server(t, "logs afterwards")
	told := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error)
	go func() {
		watched <- a.Watch(ctx, func(method string, params json.RawMessage) error {
			told <- method + " " + string(params)
			return nil
		})
	}()
	wait.Until(t, "it is watched", a.watched.Load)
	if _, o := call1(t, a, "x", "{}"); o.err != nil {
		t.Fatal(o.err)
	}
	a.tellRoots()
	if got, want := <-told, `notifications/message {"level":"info","data":{"n":1}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// What a server announces and no host takes is bounded, in number and in bytes; what says
// the same as another takes no room.
func TestNoticesAreBounded(t *testing.T) {
	n := newNotices()
	long := func(i int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"uri":"x://%d","_meta":{"k":"%s"}}`, i, strings.Repeat("x", maxNoticeBytes/2)))
	}
	kept := 0
	for i := range 4 * maxNoticesBytes / maxNoticeBytes {
		if n.add(methodUpdated, long(i)) {
			kept++
		}
	}
	if kept == 0 || kept*len(long(0)) > maxNoticesBytes || !n.add(methodUpdated, long(0)) {
		t.Errorf("%d of %d bytes are kept", kept, len(long(0)))
	}
	if got := len(n.take()); got != kept {
		t.Errorf("%d are taken of %d", got, kept)
	}
	for i := range 2 * maxNotices {
		if kept := n.add(methodUpdated, json.RawMessage(fmt.Sprint(i))); kept != (i < maxNotices) {
			t.Fatalf("notice %d is kept: %t", i, kept)
		}
	}
	n.take()
	if n.add(methodUpdated, make(json.RawMessage, maxNoticeBytes+1)) {
		t.Error("one that no host takes is kept")
	}
}

// Messages of a log are kept as often as they come, and leave room for what else is
// announced.
func TestLogsAmongNotices(t *testing.T) {
	n := newNotices()
	kept := 0
	for range 2 * maxNotices {
		if n.add(methodLog, json.RawMessage(`{"data":"the same"}`)) {
			kept++
		}
	}
	if got := len(n.take()); kept != maxNotices/2 || got != kept {
		t.Errorf("%d are kept of %d, and %d taken", kept, 2*maxNotices, got)
	}
	long := json.RawMessage(`"` + strings.Repeat("x", maxNoticeBytes-2) + `"`)
	for range maxNotices {
		n.add(methodLog, long)
	}
	if !n.add(methodUpdated, long) {
		t.Error("a log has displaced an update")
	}
}
