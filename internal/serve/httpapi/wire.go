package httpapi

import (
	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// wireTurn is a turn as the API shows it.
func wireTurn(i turn.Info) api.Turn {
	w := api.Turn{
		TurnID: i.TurnID, AgentID: i.AgentID, SessionID: i.SessionID, Owner: i.Owner, ParentTurnID: i.ParentID, Depth: i.Depth, StartedAt: i.StartedAt,
		CurrentTools: []api.CurrentTool{}, ToolCallCount: i.ToolCallCount, TimedOutTools: i.TimedOutTools,
		Streaming: i.Streaming, StreamMs: i.StreamMs, StreamLeftMs: i.StreamLeftMs,
		PendingInteractions: append([]api.Interaction{}, i.PendingInteractions...),
	}
	for _, c := range i.CurrentTools {
		one := api.CurrentTool{
			CallID: c.CallID, Tool: c.Tool, State: c.State, StartedAt: c.StartedAt, TimeoutMs: c.TimeoutMs,
			HumanWaitMs: c.HumanWaitMs, Worker: c.Worker, Usage: usageOf(c.Running),
		}
		if one.Usage != nil { // of one that starts, before its tool has said so
			one.State = "running"
		}
		w.CurrentTools = append(w.CurrentTools, one)
	}
	return w
}

// usageOf asks a call what it uses; one of the supervisor's knows.
func usageOf(c turn.Running) *api.CurrentUsage {
	call, ok := c.(turn.Processes)
	if !ok {
		return nil
	}
	now, ok := call.Current()
	if !ok {
		return nil
	}
	return &api.CurrentUsage{CPUMs: now.CPU.Milliseconds(), MemoryBytes: now.MemoryBytes, Pids: now.Pids}
}
