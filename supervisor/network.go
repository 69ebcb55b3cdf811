package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/egress"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// RelayMain enables calls with network grants; without it they are refused. Call it first in
// main. In a process that was started as a host's relay it serves and does not return;
// otherwise it returns at once.
func RelayMain() { egress.Main() }

// Ceiling bounds the networks and files that calls may be granted. The zero value does not
// restrict them.
type Ceiling struct {
	// Network is sandbox.NetworkNone, NetworkHost for no bound, or NetworkGrants. Empty means
	// NetworkGrants if there are Grants, else NetworkHost.
	Network string
	Grants  []network.Grant
	// Source says where the bound on networks comes from, for error messages.
	Source string
	// Files returns an error if no call may be granted the path, for reading or for writing;
	// nil allows all paths. It gets the real path of the file that was opened for the call, and
	// must be safe for concurrent use.
	Files func(path string, write bool) error
}

// mode returns the ceiling's network, with the default for an empty one.
func (l Ceiling) mode() string {
	if len(l.Grants) > 0 {
		return cmp.Or(l.Network, sandbox.NetworkGrants)
	}
	return cmp.Or(l.Network, sandbox.NetworkHost)
}

// complete checks the ceiling, and normalizes its grants as those of calls.
func (l *Ceiling) complete() error {
	words := []string{sandbox.NetworkNone, sandbox.NetworkHost, sandbox.NetworkGrants}
	switch mode := l.mode(); {
	case !slices.Contains(words, mode):
		return fmt.Errorf("ceiling: network %q is unknown: must be one of %s", mode, strings.Join(words, ", "))
	case mode != sandbox.NetworkGrants && len(l.Grants) > 0:
		return fmt.Errorf("ceiling: network %q and grants contradict one another: leave one of them out", mode)
	}
	l.Grants = slices.Clone(l.Grants)
	for i, g := range l.Grants {
		var err error
		if l.Grants[i], err = g.Normal(); err != nil {
			return fmt.Errorf("ceiling: %w", err)
		}
	}
	return nil
}

// Refuses returns an error if the policy exceeds the bound on networks. It does
// not report other errors in the policy.
func (l Ceiling) Refuses(p Policy) error {
	p.Read, p.Write, p.Workspace = nil, nil, ""
	resolved, err := p.Resolve()
	if err != nil {
		return nil
	}
	return l.refusesNetwork(resolved)
}

// refusesNetwork returns an error if the policy exceeds the bound on networks.
func (l Ceiling) refusesNetwork(p sandbox.Resolved) error {
	bound, mode := l.mode(), p.Network()
	if bound == sandbox.NetworkHost || mode == sandbox.NetworkNone {
		return nil
	}
	source := ""
	if l.Source != "" {
		source = " (" + l.Source + ")"
	}
	if bound == sandbox.NetworkNone || mode == sandbox.NetworkHost {
		return fmt.Errorf("network %s goes beyond the ceiling limits.network: %s%s: leave it out, or have the operator raise the ceiling", mode, l, source)
	}
	grants, ask, _ := p.Grants()
	if ask {
		return fmt.Errorf("asking about names that are not granted goes beyond the ceiling limits.network: %s%s: leave it out, or have the operator raise the ceiling", l, source)
	}
	if err := network.Exceeds(l.Grants, grants); err != nil {
		return fmt.Errorf("%w%s", err, source)
	}
	return nil
}

func (l Ceiling) String() string {
	if mode := l.mode(); mode != sandbox.NetworkGrants {
		return mode
	}
	var list []string
	for _, g := range l.Grants {
		list = append(list, g.String())
	}
	return fmt.Sprintf("%q", list)
}

// refusesFiles returns an error if the policy exceeds the bound on files.
func (l Ceiling) refusesFiles(p sandbox.Resolved) error {
	if l.Files == nil {
		return nil
	}
	for path, write := range p.Sources() {
		if err := l.Files(path, write); err != nil {
			return err
		}
	}
	return nil
}

// checkPolicy refuses what the ceiling, or this host, does not allow.
func (s *Supervisor) checkPolicy(p sandbox.Resolved) error {
	if err := cmp.Or(s.config.Ceiling.refusesNetwork(p), s.config.Ceiling.refusesFiles(p)); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	if _, _, granted := p.Grants(); granted {
		if err := egress.Offered(); err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
		}
	}
	return nil
}
