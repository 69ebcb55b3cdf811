package sandbox

import (
	"github.com/toolhost/toolhost/api"
	"golang.org/x/sys/unix"
)

// isolation is what TierNone gives: lifetimes, and little else.
type isolation struct {
	// pidNamespace: the launcher is PID 1, and its end is the tree's end.
	pidNamespace bool
	// proc: a /proc of the call's own could be mounted.
	proc     bool
	degraded []api.Degradation
}

// isolations are tried strongest first.
func isolations() []isolation {
	noProc := api.Degradation{Feature: FeatureProc, Reason: "/proc cannot be mounted anew, host processes stay visible in it", Remedy: "do not mask /proc of the container that toolhost runs in"}
	noPID := api.Degradation{Feature: FeaturePIDNS, Reason: "no PID namespace to be had; the cgroup alone holds the tree", Remedy: "run as root, or type as root: sysctl -w user.max_user_namespaces=15000, and allow unprivileged user namespaces"}
	return []isolation{
		{pidNamespace: true, proc: true},
		{pidNamespace: true, degraded: []api.Degradation{noProc}},
		{degraded: []api.Degradation{noPID}},
	}
}

// weakest is what always works.
func weakest() isolation {
	all := isolations()
	return all[len(all)-1]
}

// planNone plans TierNone, which has nothing that a policy can require.
func (r Resolved) planNone(f Features, t Task) (*Plan, error) {
	if r.workspace != "" {
		return nil, &UnconfinedError{"the workspace " + r.workspace}
	}
	if len(t.Secrets) > 0 {
		return nil, &UnconfinedError{"the secret file " + t.Secrets[0].Name}
	}
	for _, feature := range r.policy.Require {
		found := f.find(feature)
		found.State, found.Reason, found.Remedy = No, "tier "+TierNone+" does without", "choose tier "+TierNative+", or do not require it"
		return nil, &MissingError{found}
	}
	i := f.lifetimes
	p := &Plan{lifetimes: i, shared: true}
	if i.pidNamespace {
		p.flags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	p.receipt = api.Receipt{
		Tier: TierNone, Network: NetworkHost, Read: []string{"/"}, Write: []string{"/"},
		Enforced: []string{}, Degraded: append([]api.Degradation{}, i.degraded...),
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{FeaturePIDNS, i.pidNamespace}, {FeatureMountNS, i.pidNamespace}, {FeatureProc, i.proc}, {"subreaper", !i.pidNamespace}} {
		if f.on {
			p.receipt.Enforced = append(p.receipt.Enforced, f.name)
		}
	}
	p.receipt.Enforced = append(p.receipt.Enforced, "lifeline", "timer", "session")
	return p, nil
}
