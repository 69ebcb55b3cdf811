package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/sandbox"
)

// OwnDirs are the folders that a supervisor of this configuration uses itself.
func (c Config) OwnDirs() []string {
	return []string{cmp.Or(c.StoreDir, defaultStoreDir()), cmp.Or(c.RuntimeDir, defaultRuntimeDir())}
}

// keepOwn keeps what is toolhost's own out of a policy's grants.
func (s *Supervisor) keepOwn(policy *sandbox.Resolved) error {
	trusted := append(s.config.OwnDirs(), s.users)
	var own sandbox.Own
	if s.config.Own != nil {
		own = s.config.Own()
	}
	own.Hidden = slices.Concat(trusted, own.Hidden)
	err := s.guard.Apply(policy, own)
	if _, refused := errors.AsType[*sandbox.OwnError](err); err != nil && !refused {
		return err
	}
	for _, path := range trusted { // which others are executed, or trusted, by
		if policy.MayWrite(path) || policy.WritesBelow(path) {
			return fmt.Errorf("cannot grant writing to %s, which is toolhost's own, or to a folder around it: grant what is needed below or beside it", path)
		}
	}
	return err
}
