package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// callFlags are those that run and exec share.
type callFlags struct {
	timeout, soft, grace                          time.Duration
	memory, pids, cpu, output, outputTotal, spill string
	cpuTime                                       time.Duration
	read, write, env, allow, require              []string
	net, sha256, cgroupParent, workspace, out     string
	mode                                          string
	json, events, quiet, strict, unsafe, headless bool

	set func(name string) bool
}

func (f *callFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.set = flags.Changed
	flags.DurationVar(&f.timeout, "timeout", 0, "wall-clock limit from admission on (default 30s)")
	flags.DurationVar(&f.soft, "soft", 0, "soft budget: passing it is reported, nothing else (default 10s)")
	flags.DurationVar(&f.grace, "grace", 0, "time between SIGTERM and SIGKILL, at most 30s (default 2s)")
	flags.StringVar(&f.memory, "memory", "", "memory limit of all processes, such as 512MiB (the default), or infinity")
	flags.StringVar(&f.pids, "pids", "", "limit of processes and threads (default 64), or infinity")
	flags.StringVar(&f.cpu, "cpu", "", "CPU quota in percent of one CPU (default 100%), or infinity")
	flags.DurationVar(&f.cpuTime, "cpu-time", 0, "CPU time of all processes together; passing it kills (default none)")
	flags.StringVar(&f.output, "output", "", "how much of each output stream the result keeps (default 1MiB)")
	flags.StringVar(&f.outputTotal, "output-total", "", "how much may be written in all; passing it kills (default none)")
	flags.StringVar(&f.spill, "spill", "", "folder that takes output which the result cuts")
	flags.StringArrayVar(&f.read, "read", nil, "show the file or folder `PATH` to the call")
	flags.StringArrayVar(&f.write, "write", nil, "show `PATH` and let the call change it")
	flags.StringVar(&f.net, "net", "", "network: none (the default) or host")
	flags.StringVar(&f.workspace, "workspace", "", "size of the call's own folder (default a quarter of the memory limit)")
	flags.StringVar(&f.out, "out", "", "take the files that the call leaves in its workspace to the new folder `DIR`")
	flags.BoolVar(&f.strict, "strict", false, "refuse file locks too, by which calls could signal to one another")
	flags.StringArrayVar(&f.allow, "allow", nil, "accept a `DEGRADATION` of the sandbox: sharedUid, landlockScope")
	flags.StringArrayVar(&f.require, "require", nil, "refuse to run without this optional `FEATURE`: landlock, landlockScope")
	flags.BoolVar(&f.unsafe, "unsafe-no-sandbox", false, "run without a sandbox: files, network and system calls are then yours")
	flags.StringVar(&f.mode, "mode", "", "allow, ask or deny (default ask for a tool that says it is destructive, else allow)")
	flags.BoolVar(&f.headless, "headless", false, "ask nobody: what would be asked is denied, with exit code 4")
	flags.StringArrayVar(&f.env, "env", nil, "set `K=V` in the tool's environment, or pass K on from this one")
	flags.StringVar(&f.sha256, "sha256", "", "run the binary only if this is its SHA-256")
	flags.StringVar(&f.cgroupParent, "cgroup-parent", "", "make cgroups below this one instead of finding a place")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON, alone, on stdout")
	flags.BoolVar(&f.events, "events", false, "print one JSON event a line on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "print no live line and no outcome")
	flags.SortFlags = false
}

// request puts the flags into a request.
func (f *callFlags) request() (supervisor.Request, error) {
	var r supervisor.Request
	if err := f.checkMode(); err != nil {
		return r, err
	}
	policy, err := f.policy()
	if err != nil {
		return r, err
	}
	limits, err := f.limits()
	if err != nil {
		return r, err
	}
	r.Limits, r.SHA256, r.Env, r.Sandbox, r.FilesTo = limits, f.sha256, environment(f.env), policy, f.out
	r.Timeouts = f.timeouts()
	if f.set("grace") {
		if f.grace < 0 {
			return r, usageError("--grace %s is negative: give 0 to kill at once, or up to %s", f.grace, budget.MaxGrace)
		}
		r.Grace = f.grace
		if f.grace == 0 {
			r.Grace = budget.NoGrace
		}
	}
	return r, nil
}

// policy is what the flags grant.
func (f *callFlags) policy() (*sandbox.Policy, error) {
	p := &sandbox.Policy{Read: f.read, Write: f.write, Network: f.net, Strict: f.strict, Allow: f.allow, Require: f.require}
	if f.unsafe {
		if err := f.contradicts("--unsafe-no-sandbox", "read", "write", "net", "workspace", "out", "strict", "allow", "require"); err != nil {
			return nil, err
		}
		p.Tier = sandbox.TierNone
	}
	if len(p.Read)+len(p.Write) > 0 {
		// Whoever grants paths by hand wants them used with his own rights.
		p.Allow = append(slices.Clone(p.Allow), sandbox.SharedUID)
	}
	if _, err := p.Resolve(); err != nil {
		return nil, usageError("%w", err)
	}
	return p, nil
}

// contradicts refuses flags that mean nothing beside another.
func (f *callFlags) contradicts(flag string, others ...string) error {
	for _, other := range others {
		if f.set(other) {
			return usageError("--%s and %s contradict one another: leave one of them out", other, flag)
		}
	}
	return nil
}

func (f *callFlags) timeouts() []budget.Ask {
	var asks []budget.Ask
	if f.set("timeout") {
		asks = append(asks, budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: f.timeout, Detail: "--timeout"})
	}
	if f.set("soft") {
		asks = append(asks, budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankFlag, TimeoutUnset: true, Soft: f.soft, Detail: "--soft"})
	}
	return asks
}

func (f *callFlags) limits() (l supervisor.Limits, err error) {
	for _, v := range []struct {
		name, value string
		parse       func(string) (int64, bool)
		into        *int64
		example     string
	}{
		{"memory", f.memory, parseSize, &l.MemoryBytes, "512MiB"},
		{"pids", f.pids, parseCount, &l.Pids, "64"},
		{"cpu", f.cpu, parsePercent, &l.CPUPercent, "100%"},
		{"output", f.output, parseSize, &l.OutputBytes, "1MiB"},
		{"output-total", f.outputTotal, parseSize, &l.OutputTotalBytes, "64MiB"},
		{"workspace", f.workspace, parseSize, &l.WorkspaceBytes, "64MiB"},
	} {
		if !f.set(v.name) {
			continue
		}
		n, ok := v.parse(v.value)
		if !ok {
			return l, usageError("--%s %q is no limit: give a positive value such as %s", v.name, v.value, v.example)
		}
		*v.into = n
	}
	if f.set("cpu-time") {
		if f.cpuTime <= 0 {
			return l, usageError("--cpu-time %s is no limit: give a positive value such as 10s", f.cpuTime)
		}
		l.CPUTime = f.cpuTime
	}
	if err := l.Validate(); err != nil {
		return l, usageError("%w", err)
	}
	return l, nil
}

const maxLimit = int64(1) << 60

func parseSize(s string) (int64, bool) {
	if s == "infinity" {
		return supervisor.Unlimited, true
	}
	v, err := units.RAMInBytes(s)
	return v, err == nil && v > 0 && v <= maxLimit
}

func parseCount(s string) (int64, bool) {
	if s == "infinity" {
		return supervisor.Unlimited, true
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v > 0 && v <= math.MaxInt32
}

func parsePercent(s string) (int64, bool) {
	if s == "infinity" {
		return supervisor.Unlimited, true
	}
	return parseCount(strings.TrimSuffix(s, "%"))
}
