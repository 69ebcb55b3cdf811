package prepare

import (
	"fmt"
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
	for _, path := range p.Trusted { // which others are executed, or trusted, by
		if policy.MayWrite(path) || policy.WritesBelow(path) {
			return fmt.Errorf("cannot grant writing to %s, which is toolhost's own, or to a folder around it: grant what is needed below or beside it", path)
		}
	}
	if work == ForExplain {
		return p.guard.Judge(policy, own)
	}
	return p.guard.Apply(policy, own)
}
