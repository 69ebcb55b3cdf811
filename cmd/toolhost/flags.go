package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
)

// callFlags are those that run and exec share.
type callFlags struct {
	timeout, soft, grace                          time.Duration
	read, write, env, allow, require              []string
	net                                           []string
	sha256, cgroupParent, out, spill              string
	config                                        string
	json, events, quiet, strict, unsafe, headless bool
	noCgroup                                      bool

	once    bool // the command ends with its calls
	journal journalFlags
	trace   tracing
	given   *pflag.FlagSet
	screen  *terminal.Screen // that a command's output passes to
}

// toolKeys are the flags that stand for keys of tools in the configuration, whose last
// layer they are. The others are a request's: times are clamped where the file's are
// refused, and grants add to a tool's.
var toolKeys = map[string]string{
	"memory": "memory", "pids": "pids", "cpu": "cpu", "cpu-time": "cpuTime", "output": "output", "output-total": "outputTotal", "workspace": "workspace", "mode": "mode",
}

// layer is what those flags say that stand for keys.
func layer(given *pflag.FlagSet, keys map[string]string) (list []config.Flag) {
	given.Visit(func(flag *pflag.Flag) {
		if key := keys[flag.Name]; key != "" {
			list = append(list, config.Flag{Key: key, Value: flag.Value.String(), Name: "--" + flag.Name})
		}
	})
	return list
}

// set says whether a flag was given.
func (f *callFlags) set(name string) bool { return f.given.Changed(name) }

func (f *callFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.given = flags
	callargs.DurationVar(flags, &f.timeout, "timeout", 0, "wall-clock limit from admission on: 10 is seconds, 5m minutes (default 30s)")
	callargs.DurationVar(flags, &f.soft, "soft", 0, "soft budget: a call over it is reported, and goes on (default 10s)")
	callargs.DurationVar(flags, &f.grace, "grace", 0, "time between SIGTERM and SIGKILL, at most 30s (default 2s)")
	flags.String("memory", "", "memory limit of all processes together, or infinity (default 512MiB)")
	flags.String("pids", "", "limit of processes and threads, or infinity (default 64)")
	flags.String("cpu", "", "CPU quota in percent of one CPU, or infinity (default 100%)")
	callargs.DurationVar(flags, new(time.Duration), "cpu-time", 0, "limit of the CPU time of all processes together (default none)")
	flags.String("output", "", "how much of each output stream the result keeps, at most 256MiB (default 1MiB)")
	flags.String("output-total", "", "limit of all output together (default none)")
	flags.StringVar(&f.spill, "spill", "", "folder for output that the result does not keep, at most 64MiB a stream")
	flags.StringArrayVar(&f.read, "read", nil, "show the file or folder `PATH` to the call")
	flags.StringArrayVar(&f.write, "write", nil, "show `PATH` and let the call change it")
	flags.StringArrayVar(&f.net, "net", nil, "network: none (the default), host, or a `NAME[:PORT]`, address or network to reach; may be repeated")
	flags.String("workspace", "", "size of the call's own folder (default a quarter of the memory limit)")
	flags.StringVar(&f.out, "out", "", "copy the files that the call leaves in its workspace to the new folder `DIR`: at most 16 MiB a file, 64 MiB and 1000 names in all, 32 folders deep")
	flags.BoolVar(&f.strict, "strict", false, "deny file locks too, by which calls could signal to one another")
	flags.StringArrayVar(&f.allow, "allow", nil, "accept a `DEGRADATION` of the sandbox: sharedUid, landlockScope")
	flags.StringArrayVar(&f.require, "require", nil, "refuse to run without this optional `FEATURE`: landlock, landlockScope")
	flags.BoolVar(&f.unsafe, "unsafe-no-sandbox", false, "run without a sandbox, with your own files, network and system calls")
	flags.String("mode", "", "allow, ask or deny (default ask for a tool that says it is destructive, else allow)")
	flags.BoolVar(&f.headless, "headless", false, "ask nobody: what would be asked is denied, with exit code 4")
	flags.StringArrayVar(&f.env, "env", nil, "set `K=V` in the tool's environment, or pass K on from this one")
	flags.StringVar(&f.sha256, "sha256", "", "run the binary only if this is its SHA-256")
	flags.StringVar(&f.config, "config", "", "read this toolhost.yaml (see toolhost config)")
	flags.StringVar(&f.cgroupParent, "cgroup-parent", "", "make cgroups below this one instead of finding a place")
	flags.BoolVar(&f.noCgroup, noCgroupFlag, false, noCgroupUsage)
	flags.BoolVar(&f.json, "json", false, "print the result as JSON, alone, on stdout")
	flags.BoolVar(&f.events, "events", false, "print one JSON event a line on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "print no live line and no outcome")
	flags.SortFlags = false
}

// check refuses what is wrong with the flags by themselves.
func (f *callFlags) check() error {
	switch {
	case f.timeout < 0:
		return exit.Usagef("--timeout %s is negative: give a positive one such as 30s", f.timeout)
	case f.set("soft") && f.soft <= 0:
		return exit.Usagef("--soft %s is not a budget: give a positive value such as 10s, or leave it out", f.soft)
	case f.grace < 0:
		return exit.Usagef("--grace %s is negative: give 0 to kill at once, or up to %s", f.grace, budget.MaxGrace)
	}
	if err := callargs.CheckEnv(f.env); err != nil {
		return exit.With(exit.Usage, err)
	}
	if f.unsafe {
		if err := f.contradicts("--unsafe-no-sandbox", "read", "write", "net", "workspace", "out", "strict", "allow", "require"); err != nil {
			return err
		}
	}
	if f.noCgroup {
		if err := f.contradicts("--"+noCgroupFlag, "unsafe-no-sandbox", "cgroup-parent", "cpu", "cpu-time"); err != nil {
			return err
		}
	}
	var policy sandbox.Policy
	if err := f.grantNetwork(&policy); err != nil {
		return exit.With(exit.Usage, err)
	}
	f.grant(&policy)
	if err := policy.Check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	return nil
}

// grant adds what the flags grant.
func (f *callFlags) grant(p *sandbox.Policy) {
	p.Read, p.Write = slices.Concat(p.Read, f.read), slices.Concat(p.Write, f.write)
	p.Allow, p.Require = slices.Concat(p.Allow, f.allow), slices.Concat(p.Require, f.require)
	p.Strict = p.Strict || f.strict
	_ = f.grantNetwork(p) // check has refused what is wrong
	if f.unsafe {
		*p = sandbox.Policy{Tier: sandbox.TierNone}
	}
	if len(f.read)+len(f.write) > 0 && !slices.Contains(p.Allow, sandbox.SharedUID) {
		// Whoever grants paths by hand wants them used with his own rights.
		p.Allow = append(p.Allow, sandbox.SharedUID)
	}
}

// contradicts refuses flags that mean nothing beside another.
func (f *callFlags) contradicts(flag string, others ...string) error {
	for _, other := range others {
		if f.set(other) {
			return exit.Usagef("--%s and %s contradict one another: leave one of them out", other, flag)
		}
	}
	return nil
}
