package sandbox

import (
	"context"
	"errors"
	"os"
	"testing"
)

// nulls are descriptors of a message.
func nulls(t *testing.T, n int) (files []*os.File) {
	t.Helper()
	for range n {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		files = append(files, file)
	}
	return files
}

// The sockets of a call are there before its tool runs, once; without them the wait ends
// with the start, or is given up.
func TestSocketsComeBeforeTheTool(t *testing.T) {
	fresh := func() *Process { return &Process{arranged: make(chan struct{}), ready: make(chan struct{})} }
	p := fresh()
	few := nulls(t, fewestSockets-1)
	if p.onSockets(few); closed(p.arranged) || few[0] == nil {
		t.Error("a message without a name server was taken")
	}
	sent := nulls(t, fewestSockets+1)
	last := sent[fewestSockets]
	go p.onSockets(sent)
	if got := p.TakeSockets(t.Context()); got == nil || len(got.Listen) != 1 || got.Listen[0] != last || closed(p.ready) {
		t.Errorf("%+v", got)
	}
	again := nulls(t, fewestSockets)
	if p.onSockets(again); p.sockets.Load() != nil || again[0] == nil {
		t.Error("a second message was taken")
	}
	p = fresh()
	go p.settle(errors.New("no"))
	if got := p.TakeSockets(t.Context()); got != nil {
		t.Errorf("of a start that failed: %+v", got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := fresh().TakeSockets(over); got != nil {
		t.Errorf("given up: %+v", got)
	}
}
