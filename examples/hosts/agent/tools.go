package main

import (
	"context"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

// host makes the supervisor, whose policy is that of every call.
func (o *options) host() (*supervisor.Supervisor, error) {
	policy := supervisor.Policy{Read: o.read, Write: o.write}
	if len(o.read)+len(o.write) > 0 {
		// Without root, tools may use the granted paths as the user himself.
		policy.Allow = []string{"sharedUid"}
	}
	if err := policy.Check(); err != nil {
		return nil, err
	}
	return supervisor.New(context.Background(), supervisor.Config{Sandbox: policy})
}

// offer is one tool, as the turn and as the model know it.
type offer struct {
	tool  turn.Tool
	shown format.Tool
}

// offered asks every plugin what tools it has.
func (o *options) offered(host *supervisor.Supervisor) ([]offer, error) {
	var offers []offer
	for _, path := range o.plugins {
		request := supervisor.Request{Tool: supervisor.Tool{Path: path}}
		description, failed := host.Describe(context.Background(), request)
		if failed != nil {
			return nil, fmt.Errorf("cannot offer the tools of %s: %s", path, failed.Message)
		}
		for _, d := range description.Tools {
			if d.GetName() == turn.StatusTool {
				return nil, fmt.Errorf("the tool name %q of %s is the turn's own", turn.StatusTool, path)
			}
			request.Tool.Name = d.GetName()
			offers = append(offers, offer{
				tool: turn.Tool{
					Name: d.GetName(), Request: request, Mode: o.mode(),
					Destructive: d.GetAnnotations().GetDestructive(),
					// Tools that may write run alone.
					Exclusive: len(o.write) > 0 || d.GetConcurrency().String() == "CONCURRENCY_EXCLUSIVE",
				},
				shown: format.Tool{
					Name: d.GetName(), Title: d.GetTitle(), Description: d.GetDescription(), InputSchema: d.GetInputSchema(),
				},
			})
		}
	}
	return offers, nil
}

// mode of every tool; an empty one asks before destructive tools.
func (o *options) mode() turn.Mode {
	switch {
	case o.yes:
		return turn.ModeAllow
	case o.ask:
		return turn.ModeAsk
	}
	return ""
}

// lookup is turn.Config.Tool. That no name comes twice is seen to by
// format.Provider.Tools.
func lookup(offers []offer) func(name string) (turn.Tool, bool) {
	tools := map[string]turn.Tool{}
	for _, o := range offers {
		tools[o.tool.Name] = o.tool
	}
	return func(name string) (turn.Tool, bool) { t, ok := tools[name]; return t, ok }
}

// show tells on w when a call begins and how it ends. The channel is closed
// after the turn's last event.
func show(t *turn.Turn, w io.Writer) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range t.Events(context.Background(), 0) {
			showRecord(w, r)
		}
	}()
	return done
}

func showRecord(w io.Writer, r *turn.Record) {
	name := oneLine(r.Event.CallID + " " + r.Event.Tool)
	switch {
	case r.Gap != nil: // this reader was too slow
		fmt.Fprintf(w, "events %d to %d are missing\n", r.Gap.From, r.Gap.To)
	case r.Event.Kind == api.EventStarted:
		fmt.Fprintf(w, "[%s] started\n", name)
	case r.Result != nil && r.Result.OK():
		fmt.Fprintf(w, "[%s] ok after %d ms\n", name, r.Result.Timing.ElapsedMs)
	case r.Result != nil:
		fmt.Fprintf(w, "[%s] %s: %s\n", name, r.Result.Status, oneLine(r.Result.Message))
	}
}
