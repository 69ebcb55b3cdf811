package main

import (
	"context"
	"encoding/json"
	"os/signal"
	"syscall"

	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// checkMode refuses a mode that is none.
func (f *callFlags) checkMode() error {
	switch turn.Mode(f.mode) {
	case "", turn.ModeAllow, turn.ModeAsk, turn.ModeDeny:
		return nil
	}
	return usageError("--mode %q is unknown: give allow, ask or deny", f.mode)
}

// interactor asks on the terminal; nil if nobody can be asked.
func (f *callFlags) interactor() turn.Interactor {
	if f.headless {
		return nil
	}
	asks, err := terminal.Open()
	if err != nil {
		return nil
	}
	return asks
}

// permitted is a call that a human has said yes to.
type permitted struct{ name string }

func (permitted) Abort(supervisor.AbortReason) {}

func (p permitted) Result() *supervisor.Result {
	return supervisor.Verdict{Tool: p.name, Status: supervisor.StatusOK}.Result()
}

// gate asks for permission where the mode says so. It returns the refusal, or
// nil and how long it was waited for.
func (f *callFlags) gate(tool turn.Tool, arguments json.RawMessage) (refused *supervisor.Result, waitedMs int64, err error) {
	tool.Mode = turn.Mode(f.mode)
	asks := f.interactor()
	m := turn.New(turn.Config{
		Start:      func(context.Context, supervisor.Request) turn.Running { return permitted{tool.Name} },
		Tool:       func(string) (turn.Tool, bool) { return tool, true },
		Interactor: asks, NoStatus: true,
	})
	t, err := m.Begin(turn.Spec{Headless: asks == nil})
	if err != nil {
		return nil, 0, hostError(err)
	}
	defer t.End()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	results, err := t.Run(ctx, []turn.Call{{ID: "call", Tool: tool.Name, Arguments: arguments}})
	if err != nil {
		return nil, 0, hostError(err)
	}
	if r := results[0]; !r.OK() {
		return r, r.Timing.HumanWaitMs, nil
	}
	return nil, results[0].Timing.HumanWaitMs, nil
}

// gated runs a call if it may be run.
func (f *callFlags) gated(host *supervisor.Supervisor, request supervisor.Request, tool turn.Tool, view runView) (*supervisor.Result, error) {
	tool.Request = request
	shown := request.Arguments
	if request.Command != nil {
		shown, _ = json.Marshal(map[string]any{"argv": request.Command.Argv})
	}
	refused, waited, err := f.gate(tool, shown)
	if refused != nil || err != nil {
		return refused, err
	}
	result := runCall(host, request, f, view)
	result.Timing.HumanWaitMs += waited
	return result, nil
}
