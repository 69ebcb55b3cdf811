package main

import (
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
)

// callFlags are those that run and exec share.
type callFlags struct {
	cgroupParent, out, spill, config                string
	json, events, quiet, unsafe, headless, noCgroup bool

	once    bool // the command ends with its calls
	own     keys // of flags that only this command has
	journal journalFlags
	trace   tracing
	given   *pflag.FlagSet
	screen  *terminal.Screen // that a command's output passes to
}

// keys are those of the configuration that flags stand for, whose last layer they are.
type keys map[string]string

var toolKeys = keys{
	"timeout": "timeout", "soft": "soft", "grace": "grace",
	"memory": "memory", "pids": "pids", "cpu": "cpu", "cpu-time": "cpuTime", "output": "output", "output-total": "outputTotal", "workspace": "workspace",
	"read": "read", "write": "write", "net": "network", "strict": "strict", "allow": "allow", "require": "require",
	"env": "env", "sha256": "sha256", "mode": "mode",
}

// layer is what the flags that were given say; a nil set has no flags.
func (k keys) layer(given *pflag.FlagSet) (list []config.Flag) {
	if given == nil {
		return nil
	}
	given.Visit(func(flag *pflag.Flag) {
		if key := k[flag.Name]; key != "" {
			list = append(list, config.Flag{Key: key, Values: valuesOf(flag), Name: "--" + flag.Name})
		}
	})
	return list
}

func valuesOf(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// layer is what the flags say of tools.
func (f *callFlags) layer() []config.Flag {
	list := slices.Concat(toolKeys.layer(f.given), retentionKeys.layer(f.given), f.own.layer(f.given))
	if f.unsafe {
		list = append(list, config.Flag{Key: "tier", Values: []string{sandbox.TierNone}, Name: "--unsafe-no-sandbox"})
	}
	return list
}

// set says whether a flag was given.
func (f *callFlags) set(name string) bool { return f.given.Changed(name) }

func (f *callFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.given = flags
	cmdline.DurationVar(flags, new(time.Duration), "timeout", 0, "wall-clock limit from admission on: 10 is seconds, 5m minutes (default 30s)")
	cmdline.DurationVar(flags, new(time.Duration), "soft", 0, "soft budget: a call over it is reported, and goes on (default 10s)")
	cmdline.DurationVar(flags, new(time.Duration), "grace", 0, "time between SIGTERM and SIGKILL, at most 30s (default 2s)")
	flags.String("memory", "", "memory limit of all processes together, or infinity (default 512MiB)")
	flags.String("pids", "", "limit of processes and threads, or infinity (default 64)")
	flags.String("cpu", "", "CPU quota in percent of one CPU, or infinity (default 100%)")
	cmdline.DurationVar(flags, new(time.Duration), "cpu-time", 0, "limit of the CPU time of all processes together (default none)")
	flags.String("output", "", "how much of each output stream the result keeps, at most 256MiB (default 1MiB)")
	flags.String("output-total", "", "limit of all output together (default none)")
	flags.StringVar(&f.spill, "spill", "", "folder for output that the result does not keep, at most 64MiB a stream; it is made if need be")
	flags.StringArray("read", nil, "show the file or folder `PATH` to the call")
	flags.StringArray("write", nil, "show `PATH` and let the call change it")
	flags.StringArray("net", nil, "network: none (the default), host, or a `NAME[:PORT]`, address or network to reach; may be repeated")
	flags.String("workspace", "", "size of the call's own folder (default a quarter of the memory limit)")
	flags.StringVar(&f.out, "out", "", "copy the files that the call leaves in its workspace to the folder `DIR`, which is made if need be: at most 16 MiB a file, 64 MiB and 1000 names in all, 32 folders deep")
	flags.Bool("strict", false, "deny file locks too, by which calls could signal to one another")
	flags.StringArray("allow", nil, "accept a `DEGRADATION` of the sandbox: sharedUid, landlockScope")
	flags.StringArray("require", nil, "refuse to run without this optional `FEATURE`: landlock, landlockScope")
	flags.BoolVar(&f.unsafe, "unsafe-no-sandbox", false, "run without a sandbox, with your own files, network and system calls")
	flags.String("mode", "", "allow, ask or deny (default ask for a tool that says it is destructive, else allow)")
	f.registerHeadless()
	flags.StringArray("env", nil, "set `K=V` in the tool's environment, or pass K on from this one")
	flags.String("sha256", "", "run the binary only if this is its SHA-256")
	flags.StringVar(&f.config, "config", "", "read this toolhost.yaml (see toolhost config)")
	flags.StringVar(&f.cgroupParent, "cgroup-parent", "", "make cgroups below this one instead of finding a place")
	flags.BoolVar(&f.noCgroup, noCgroupFlag, false, noCgroupUsage)
	f.registerOutput()
	flags.SortFlags = false
}

func (f *callFlags) registerHeadless() {
	f.given.BoolVar(&f.headless, "headless", false, "ask nobody: what would be asked is denied, with exit code 4")
}

func (f *callFlags) registerOutput() {
	f.given.BoolVar(&f.json, "json", false, "print the result as JSON, alone, on stdout")
	f.given.BoolVar(&f.events, "events", false, "print one JSON event a line on stderr")
	f.given.BoolVar(&f.quiet, "quiet", false, "print no live line and no outcome")
}

// live says whether people may be shown a line that changes.
func (f *callFlags) live() bool {
	return !f.quiet && !f.json && !f.events && present.CanRedraw(os.Stderr)
}

// check refuses flags that contradict one another.
func (f *callFlags) check() error {
	if f.unsafe {
		if err := f.contradicts("--unsafe-no-sandbox", "read", "write", "net", "workspace", "out", "strict", "allow", "require"); err != nil {
			return err
		}
	}
	if f.noCgroup {
		return f.contradicts("--"+noCgroupFlag, "unsafe-no-sandbox", "cgroup-parent", "cpu", "cpu-time")
	}
	return nil
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
