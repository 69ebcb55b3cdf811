package httpapi

import (
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/turn"
)

// wireTurn is a turn as the API shows it.
func wireTurn(i turn.Info) client.Turn {
	w := client.Turn{
		TurnID: i.TurnID, AgentID: i.AgentID, SessionID: i.SessionID, ParentTurnID: i.ParentID, StartedAt: i.StartedAt,
		CurrentTools: []client.CurrentTool{}, ToolCallCount: i.ToolCallCount, TimedOutTools: i.TimedOutTools,
		PendingInteractions: []client.Interaction{},
	}
	for _, c := range i.CurrentTools {
		w.CurrentTools = append(w.CurrentTools, client.CurrentTool{
			CallID: c.CallID, Tool: c.Tool, State: c.State, StartedAt: c.StartedAt, TimeoutMs: c.TimeoutMs,
			HumanWaitMs: c.HumanWaitMs, Usage: usageOf(c.Running),
		})
	}
	for _, p := range i.PendingInteractions {
		w.PendingInteractions = append(w.PendingInteractions, wireInteraction(p))
	}
	return w
}

// usageOf asks a call what it uses; one of the supervisor's knows.
func usageOf(c turn.Running) *client.Usage {
	call, ok := c.(interface {
		Current() (cgroup.Current, bool)
	})
	if !ok {
		return nil
	}
	now, ok := call.Current()
	if !ok {
		return nil
	}
	return &client.Usage{CPUMs: now.CPU.Milliseconds(), MemoryBytes: now.MemoryBytes, Pids: now.Pids}
}

func wireInteraction(i turn.Interaction) client.Interaction {
	w := client.Interaction{
		ID: i.ID, TurnID: i.TurnID, CallID: i.CallID, Tool: i.Tool, Kind: string(i.Kind), Prompt: i.Prompt, Schema: i.Schema, Default: i.Default,
		Arguments: i.Arguments, TimeoutMs: i.TimeoutMs, ExpiresAt: i.ExpiresAt, Secret: i.Secret,
	}
	if p := i.Policy; p != nil {
		w.Policy = &client.Policy{
			Tier: p.Tier, Network: p.Network, Read: append([]string{}, p.Read...), Write: append([]string{}, p.Write...),
		}
		orElse(&w.Policy.Tier, "native")
		orElse(&w.Policy.Network, "none")
	}
	return w
}
