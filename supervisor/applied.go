package supervisor

import (
	"cmp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
)

func (c *Call) appliedLimits() api.AppliedLimits {
	l := c.limits.Applied()
	if c.plan != nil && c.plan.Confined() {
		s := c.plan.Storage()
		l.OpenFiles = cmp.Or(c.limits.OpenFiles, sandbox.DefaultOpenFiles)
		l.WorkspaceBytes, l.WorkspaceInodes, l.TmpBytes, l.ShmBytes = s.WorkspaceBytes, s.WorkspaceInodes, s.TmpBytes, s.ShmBytes
	}
	return l
}
