package main

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// deaf is a call that ends when it has been aborted twice.
type deaf struct {
	t      *testing.T
	aborts chan api.Reason
}

func (d deaf) Abort(reason api.Reason) { d.aborts <- reason }

// Result presses Ctrl-C, and again once that has arrived.
func (d deaf) Result() *api.Result {
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			d.t.Error(err)
		}
		select {
		case <-d.aborts:
		case <-time.After(30 * time.Second):
			d.t.Error("Ctrl-C has not aborted the call")
		}
	}
	return supervisor.Verdict{Status: api.StatusCancelled}.Result()
}

// The supervisor asks a call to end at the first abort, and kills at the second.
func TestEachCtrlCAborts(t *testing.T) {
	call := deaf{t, make(chan api.Reason, 2)}
	m := turn.New(turn.Config{
		Start: func(context.Context, supervisor.Request) turn.Running { return call },
		Tool:  func(name string) (turn.Tool, bool) { return turn.Tool{Name: name}, true },
	})
	current, err := m.Begin(turn.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer current.End()
	ctx, release := interruptible(current)
	defer release()
	results, err := current.Run(ctx, []turn.Call{{ID: "1", Tool: "deaf"}})
	if err != nil || len(results) != 1 || context.Cause(ctx) != errInterrupted {
		t.Errorf("results %v, %v; cause %v", results, err, context.Cause(ctx))
	}
}
