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

// RelayMain lets the program serve calls with network grants. Call it first in main: in a
// process that was started as a host's relay it serves and does not return; otherwise it
// returns at once. Without it calls with network grants are refused.
func RelayMain() { egress.Main() }

// Ceiling bounds the networks and the files of all calls; the zero value bounds nothing.
type Ceiling struct {
	// Network is sandbox.NetworkNone, NetworkHost for no bound, or NetworkGrants; empty is
	// NetworkGrants where there are Grants, else NetworkHost.
	Network string
	Grants  []network.Grant
	// Source says where the bound of networks comes from, for refusals.
	Source string
	// Files says why no call may be granted what is at a path, to read or to write; nil allows
	// all. It is asked about what was opened for the call, by its real path, and may be called
	// from any goroutine.
	Files func(path string, write bool) error
}

// mode is the ceiling's network, with the word that may be left out.
func (l Ceiling) mode() string {
	if len(l.Grants) > 0 {
		return cmp.Or(l.Network, sandbox.NetworkGrants)
	}
	return cmp.Or(l.Network, sandbox.NetworkHost)
}

// complete checks the ceiling, and has its grants as those of calls are.
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

// Refuses returns why calls with a policy go beyond the ceiling of networks.
// What else is wrong with it is for the calls to say.
func (l Ceiling) Refuses(p Policy) error {
	p.Read, p.Write, p.Workspace = nil, nil, ""
	resolved, err := p.Resolve()
	if err != nil {
		return nil
	}
	return l.refusesNetwork(resolved)
}

// refusesNetwork says why a policy goes beyond the ceiling of networks.
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

// refusesFiles says why a policy goes beyond the ceiling of files.
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
