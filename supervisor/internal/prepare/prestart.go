package prepare

import (
	"cmp"
	"fmt"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// NotAhead says why no process can be started before a call of this request; empty if
// one can. What such a process was given must be the same for all its calls, and
// nothing that is to be used by calls alone.
func (p *Prepared) NotAhead() string {
	return cmp.Or(firstOf(
		reason{p.Request.Command != nil, "a plain command is given its arguments and its environment when it starts"},
		reason{p.Request.Keep != nil, "its process is kept for later calls (keep), which makes those quick already"},
	), p.Alone())
}

type reason struct {
	holds bool
	why   string
}

// firstOf is why, of the first that holds; empty if none does.
func firstOf(reasons ...reason) string {
	for _, r := range reasons {
		if r.holds {
			return r.why
		}
	}
	return ""
}

// Alone says why even its sandbox is for the call alone; empty if it could be made before.
func (p *Prepared) Alone() string {
	return firstOf(
		reason{len(p.Request.Secrets) > 0, "it has secrets, which are for calls alone"},
		reason{p.Request.Host != nil, "its calls begin turns of their own, at a socket that each has to itself"},
		reason{p.Request.Lock.File != "" || p.Policy.KeepsWorkspace(), "it keeps data, which one call after another has to itself"},
		reason{!p.Policy.Confines(), "it has no sandbox (tier none), and is not to run while there is no call"},
		reason{p.Policy.Network() == sandbox.NetworkHost, "it has the network of the host, which is for calls alone: grant it names instead"},
		reason{p.noCgroup, "no cgroups are in use, so that nothing bounds what it does while it waits"},
	)
}

func checkPrestart(r spec.Request) string {
	switch {
	case r.Prestart < 0:
		return "a negative number of processes that wait for calls (Prestart): leave it out, or make it positive"
	case r.Prestart > spec.MaxPrestart:
		return fmt.Sprintf("%d processes are to wait for calls (Prestart), at most %d are possible", r.Prestart, spec.MaxPrestart)
	}
	return ""
}
