package prepare

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
)

// EmptyReceipt is that of a call which did not run.
func EmptyReceipt() api.Receipt {
	return api.Receipt{Enforced: []string{}, Degraded: []api.Degradation{}, Read: []string{}, Write: []string{}}
}

// AskedReceipt is that of a call which has no processes: what was asked for is not
// done, and one that was refused before it had a plan has nothing to show.
func (p *Prepared) AskedReceipt() api.Receipt {
	r := EmptyReceipt()
	if p.Plan != nil {
		r.Tier = p.Plan.Receipt().Tier
	}
	r.Cgroup = p.cgroup
	return r
}

// Receipt is that of a call that goes through.
func (p *Prepared) Receipt() api.Receipt {
	r := p.Plan.Receipt()
	r.Cgroup = p.cgroup
	r.Enforced = slices.Clone(r.Enforced)
	if tool := p.CommandTool(); tool != nil {
		r.Shell = tool.Spec().Shell
	}
	if p.Timeout.Timeout == budget.Infinite {
		r.Enforced = slices.DeleteFunc(r.Enforced, func(s string) bool { return s == "timer" })
	}
	for _, controller := range p.controllers {
		r.Enforced = append(r.Enforced, "cgroup."+controller)
	}
	if p.noCgroup {
		r.Degraded = append(slices.Clone(r.Degraded), noCgroup())
	}
	return r
}

// AppliedLimits are the limits as a result shows them.
func (p *Prepared) AppliedLimits() api.AppliedLimits {
	l := p.Bounds.Applied()
	if p.Plan != nil && p.Plan.Confined() {
		s := p.Plan.Storage()
		l.OpenFiles = cmp.Or(p.Bounds.OpenFiles, sandbox.DefaultOpenFiles)
		l.WorkspaceBytes, l.WorkspaceInodes, l.TmpBytes, l.ShmBytes = s.WorkspaceBytes, s.WorkspaceInodes, s.TmpBytes, s.ShmBytes
		if _, _, granted := p.Policy.Grants(); granted {
			l.Network = p.Bounds.Network.Applied()
		}
	}
	return l
}

// Blank is a result with all that is known before the call begins.
func (p *Prepared) Blank() *api.Result {
	r := &api.Result{
		SchemaVersion: api.SchemaVersion, CallID: p.ID, Tool: p.Label, SHA256: p.SHA256(), Instance: api.InstanceFresh,
		Warnings: append([]string{}, p.Warnings...), Files: []api.File{}, Content: []api.Content{},
		Limits: p.AppliedLimits(), Sandbox: p.AskedReceipt(), Kill: api.Kill{Stage: "none", Signals: []string{}},
	}
	t := p.Timeout
	r.Timing = api.Timing{
		Profile: t.Profile, Source: string(t.Source), SourceDetail: t.SourceDetail,
		Clamped: t.Clamped, SoftBudgetMs: t.SoftBudget.Milliseconds(), GraceLimitMs: p.Grace.Milliseconds(),
		TimeoutMs: finiteMs(t.Timeout), SettingsWarnings: slices.Clone(p.Settings),
	}
	if t.Requested != nil {
		r.Timing.RequestedTimeoutMs = finiteMs(*t.Requested)
	}
	return r
}

func finiteMs(d time.Duration) *int64 {
	if d == budget.Infinite {
		return nil
	}
	return new(d.Milliseconds())
}
