package turn

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// left is what a call's limits have left after its rounds. What has no bound is nil.
type left struct {
	time, cpu *time.Duration
	output    *int64
}

func leftOf(before []*api.Result) (l left) {
	first := before[0]
	if first.Timing.TimeoutMs != nil {
		l.time = new(milliseconds(*first.Timing.TimeoutMs))
	}
	if first.Limits.CPUTimeMs > 0 {
		l.cpu = new(milliseconds(first.Limits.CPUTimeMs))
	}
	if first.Limits.OutputTotalBytes > 0 {
		l.output = new(first.Limits.OutputTotalBytes)
	}
	for _, one := range before {
		if l.time != nil {
			*l.time -= milliseconds(one.Timing.ElapsedMs - one.Timing.HumanWaitMs)
		}
		if l.cpu != nil {
			*l.cpu -= milliseconds(one.Usage.CPUUserMs + one.Usage.CPUSystemMs)
		}
		if l.output != nil {
			*l.output -= seen(one.Output)
		}
	}
	return l
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func seen(o api.Output) int64 { return o.Stdout.SeenBytes + o.Stderr.SeenBytes + o.Content.SeenBytes }

// limitNames are what a call has used up that ended for the causes.
var limitNames = map[api.Status]string{
	api.StatusTimeout: "[TIMEOUT] The time limit", api.StatusCPULimit: "[LIMIT] The CPU time limit", api.StatusOutputLimit: "[LIMIT] The output limit",
}

// ended is the result of a call that has nothing left of one of its limits; nil if it may
// go on. A server that asks for something once a limit is reached has given no result.
func (l left) ended(c Call, last *api.Result) *api.Result {
	v := supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Reason: api.Reason(last.Kill.Cause)}
	switch {
	case last.Kill.Cause == budget.ReasonDeadline, last.Kill.Cause == budget.ReasonTotal, last.Kill.Cause == budget.ReasonIdle:
		v.Status = api.StatusTimeout
	case l.time != nil && *l.time <= 0:
		v.Status, v.Reason = api.StatusTimeout, api.ReasonDeadline
	case l.cpu != nil && *l.cpu <= 0:
		v.Status, v.Reason = api.StatusCPULimit, api.ReasonCPUTime
	case l.output != nil && *l.output <= 0:
		v.Status, v.Reason = api.StatusOutputLimit, api.ReasonOutputTotal
	default:
		return nil
	}
	v.Message = fmt.Sprintf("%s of tool %q was reached, and its server has asked for more in place of a result; none of its processes is left.", limitNames[v.Status], c.Tool)
	r := v.Result()
	r.Kill = last.Kill
	return r
}

// bound has the next process keep to what is left.
func (l left) bound(r supervisor.Request) supervisor.Request {
	if l.time != nil {
		r.Timeouts = append(slices.Clone(r.Timeouts), budget.Ask{Layer: budget.LayerClient, TimeoutUnset: true, Max: *l.time, Left: true})
	}
	if l.cpu != nil {
		r.Limits.CPUTime = *l.cpu
	}
	if l.output != nil {
		r.Limits.OutputTotalBytes = *l.output
	}
	return r
}

// together is the one result of a call of several rounds.
func together(before []*api.Result, last *api.Result, tool supervisor.Tool) *api.Result {
	if len(before) == 0 {
		return last
	}
	own, first := *last, before[0]
	for _, one := range before {
		own.Rounds = append(own.Rounds, api.Round{Instance: one.Instance, Timing: one.Timing, Kill: one.Kill, Usage: one.Usage})
		own.Usage = usedBoth(own.Usage, one.Usage)
		own.Overran = own.Overran || one.Overran
	}
	own.Timing = timingOf(before, last.Timing)
	ran := own.Timing.ElapsedMs - own.Timing.HumanWaitMs
	own.Overran = own.Overran || first.Timing.SoftBudgetMs > 0 && ran > first.Timing.SoftBudgetMs
	own.Limits = first.Limits
	if own.Sandbox.Tier == "" { // of a call that has ended between two processes
		own.Sandbox = before[len(before)-1].Sandbox
	}
	own.Output, own.Warnings, own.Network = first.Output, first.Warnings, first.Network
	for _, one := range append(slices.Clone(before[1:]), last) {
		own.Output = outputOfBoth(own.Output, one.Output, first.Limits.OutputBytes)
		own.Network = networkOfBoth(own.Network, one.Network)
		for _, warning := range one.Warnings {
			if !slices.Contains(own.Warnings, warning) {
				own.Warnings = append(slices.Clip(own.Warnings), warning)
			}
		}
	}
	if last.Reason == api.ReasonDeadline && last.Timing.TimeoutMs != nil && first.Timing.TimeoutMs != nil {
		own.Message += fmt.Sprintf(" The rounds before had taken the rest of its %s.", milliseconds(*first.Timing.TimeoutMs))
	}
	if !last.OK() && !tool.ReadOnly { // the last round may have changed nothing, those before have run
		own.Retry.SideEffects = "possible"
		own.Retry.Retryable = own.Retry.Retryable && tool.Idempotent
	}
	return &own
}

// timingOf has the times of all rounds, and the settings that the first one found.
func timingOf(before []*api.Result, last api.Timing) api.Timing {
	t := before[0].Timing
	t.GraceMs, t.SilenceLimitMs = last.GraceMs, last.SilenceLimitMs
	for _, one := range before[1:] {
		t = addTimes(t, one.Timing)
	}
	return addTimes(t, last)
}

func addTimes(t, more api.Timing) api.Timing {
	t.QueueMs += more.QueueMs
	t.StartMs += more.StartMs
	t.RunMs += more.RunMs
	t.DrainMs += more.DrainMs
	t.ElapsedMs += more.ElapsedMs
	t.HumanWaitMs += more.HumanWaitMs
	return t
}

func usedBoth(u, one api.Usage) api.Usage {
	u.CPUUserMs += one.CPUUserMs
	u.CPUSystemMs += one.CPUSystemMs
	u.MemoryPeakBytes = max(u.MemoryPeakBytes, one.MemoryPeakBytes)
	u.PidsPeak = max(u.PidsPeak, one.PidsPeak)
	u.IOReadBytes += one.IOReadBytes
	u.IOWriteBytes += one.IOWriteBytes
	u.OOMEvents += one.OOMEvents
	u.OOMKills += one.OOMKills
	u.PidsLimitHits += one.PidsLimitHits
	u.AncestorOOMKills += one.AncestorOOMKills
	u.AncestorPidsLimitHits += one.AncestorPidsLimitHits
	return u
}

// outputOfBoth keeps the text of both while that is at most so many bytes, else of the
// later one.
func outputOfBoth(a, b api.Output, most int64) api.Output {
	b.Stdout, b.Stderr = streamOfBoth(a.Stdout, b.Stdout, most), streamOfBoth(a.Stderr, b.Stderr, most)
	b.Content.SeenBytes += a.Content.SeenBytes
	b.Undelivered = a.Undelivered || b.Undelivered
	return b
}

func streamOfBoth(a, b api.StreamOutput, most int64) api.StreamOutput {
	b.SeenBytes += a.SeenBytes
	if a.DroppedBytes > 0 || a.KeptBytes+b.KeptBytes > most {
		b.DroppedBytes += a.SeenBytes
		return b
	}
	b.Head, b.KeptBytes = a.Head+b.Head, a.KeptBytes+b.KeptBytes
	return b
}

func networkOfBoth(a, b *api.Network) *api.Network {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	n := *b
	n.Flows, n.Refused = listOfBoth(a.Flows, b.Flows), listOfBoth(a.Refused, b.Refused)
	before, refusedBefore := a.Total()
	after, refusedAfter := b.Total()
	listed, refusedListed := (&api.Network{Flows: n.Flows, Refused: n.Refused}).Total()
	n.MoreFlows = before.Connections + after.Connections - listed.Connections
	n.MoreSentBytes = before.SentBytes + after.SentBytes - listed.SentBytes
	n.MoreReceivedBytes = before.ReceivedBytes + after.ReceivedBytes - listed.ReceivedBytes
	n.MoreRefused = refusedBefore + refusedAfter - refusedListed
	n.Unreachable += a.Unreachable
	n.Shared, n.Limit, n.Error = a.Shared || b.Shared, cmp.Or(a.Limit, b.Limit), cmp.Or(a.Error, b.Error)
	return &n
}

// listOfBoth has no more entries than a result lists.
func listOfBoth[T any](a, b []T) []T {
	all := slices.Concat(a, b)
	return all[:min(len(all), api.MaxNetworkEntries)]
}
