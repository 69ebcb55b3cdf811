package prepare

import (
	"slices"

	"github.com/toolhost/toolhost/sandbox"
)

// keepOwn keeps what is toolhost's own out of a policy's grants.
func (p *Preparer) keepOwn(policy *sandbox.Resolved, work Work) error {
	var own sandbox.Own
	if p.Own != nil {
		own = p.Own()
	}
	own.Hidden = slices.Concat(p.Trusted, slices.DeleteFunc(slices.Clone(own.Hidden), func(path string) bool { return slices.Contains(p.Trusted, path) }))
	if p.SpillDir != "" && !slices.Contains(own.Fixed, p.SpillDir) {
		own.Fixed = append(slices.Clip(own.Fixed), p.SpillDir)
	}
	if err := policy.KeepFrom(p.Trusted); err != nil {
		return err
	}
	if work == ForExplain {
		return p.guard.Judge(policy, own)
	}
	return p.guard.Apply(policy, own)
}
