package httpapi

import (
	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// wireTurn is a turn as the API shows it: with what its calls use.
func wireTurn(i turn.Info) api.Turn {
	for n, running := range i.Running {
		if usage := usageOf(running); usage != nil { // of one that starts, before its tool has said so
			i.CurrentTools[n].Usage, i.CurrentTools[n].State = usage, "running"
		}
	}
	return i.Turn
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
