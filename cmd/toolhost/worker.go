//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/internal/fleetops"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// workerFlags are those of a worker.
type workerFlags struct {
	name, url, ca, key, dir, logLevel string
	callers, drainBy, labels          []string
	network, read, write              []string
	pids                              int64
	timeout, lease, wait              time.Duration
	slots                             int
	logJSON, noCgroup                 bool
	given                             *pflag.FlagSet
}

func newWorker() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use: "worker", Short: "Run calls for a daemon on another machine",
		Long: `Run calls for a daemon on another machine, or on this one. The daemon's setting
fleet has this worker's name and public key; --caller is the daemon's public key, which
it logs when it starts. Calls are bounded by what the daemon's configuration grants and
by the ceilings given here: a call beyond them is refused.

SIGTERM and SIGINT drain the worker: it takes no more calls, and those that run may
finish within --stop-wait; a second signal ends them. toolhost fleet drain
does the same from the daemon's side, without that limit: where several --caller are
given, only for the calls of the daemon that asks, until all have asked. --drain-by names
the daemons that may end the worker alone.`,
		Example: "  toolhost worker --url tls://10.0.0.5:7420 --ca fleet.pem --name w1 --key w1.key --caller UB...",
		Args:    cmdline.Words(0), RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	l := cmd.Flags()
	f.given = l
	l.StringVar(&f.url, "url", "", "connect to the fleet's engine at `URL`, tls://HOST:PORT, or on this machine nats://127.0.0.1:PORT")
	l.StringVar(&f.ca, "ca", "", "PEM `FILE` with the certificates that the engine's may have been signed by (default the system's)")
	l.StringVar(&f.name, "name", "", "the worker's `NAME` in the daemon's configuration (default this machine's)")
	l.StringVar(&f.key, "key", "", "`FILE` with the worker's key, see toolhost fleet key")
	l.StringSliceVar(&f.callers, "caller", nil, "run calls of the daemon with this public `KEY` (may be given several times)")
	l.StringSliceVar(&f.drainBy, "drain-by", nil, "let the daemon with this public `KEY` drain and end the worker by itself, though other daemons have calls made by it, too (may be given several times)")
	l.StringSliceVar(&f.labels, "label", nil, "a label `NAME=VALUE` that tools may ask for with where (may be given several times)")
	l.IntVar(&f.slots, "slots", 0, "number of calls at once (default two for each CPU)")
	l.String("max-memory", "", "refuse calls with a larger memory limit than `SIZE`")
	l.Int64Var(&f.pids, "max-pids", 0, "refuse calls with a larger pids limit than `N`")
	l.String("max-cpu", "", "refuse calls with a larger CPU limit than `PERCENT`, such as 200%")
	l.DurationVar(&f.timeout, "max-timeout", 0, "refuse calls with a longer timeout than `DURATION`")
	l.StringSliceVar(&f.network, "network", []string{sandbox.NetworkNone}, "refuse calls that may reach more than `NAME`s and addresses, none, or host (may be given several times)")
	l.StringSliceVar(&f.read, "read", nil, "calls with where may be granted `PATH` and what is below it to read (may be given several times)")
	l.StringSliceVar(&f.write, "write", nil, "calls with where may be granted `PATH` and what is below it to read and write (may be given several times)")
	l.DurationVar(&f.lease, "lease", worker.DefaultLease, "end the calls of a daemon that was not heard for `DURATION`, 2s to 1m")
	l.DurationVar(&f.wait, "stop-wait", 30*time.Second, "how long calls may go on once the worker is to end")
	l.StringVar(&f.dir, "dir", "", "folder `DIR` for the record of what was started (default worker-NAME in /run/toolhost; of a user in $XDG_RUNTIME_DIR/toolhost, or else /tmp/toolhost-UID)")
	l.BoolVar(&f.noCgroup, noCgroupFlag, false, noCgroupUsage)
	l.BoolVar(&f.logJSON, "log-json", false, "write the log as JSON (default unless stderr is a terminal)")
	l.StringVar(&f.logLevel, "log-level", "info", "log at this `LEVEL` and above: trace, debug, info, warn or error")
	l.SortFlags = false
	return cmd
}

func (f *workerFlags) run() error {
	c, err := f.config()
	if err != nil {
		return configError(err)
	}
	tracer, err := fleetops.NewTracer(c.Name, c.Version, c.Logger)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	defer tracer.Close()
	c.Tracer = tracer
	caught := make(chan os.Signal, 4)
	signal.Notify(caught, signals.NotIgnored(os.Interrupt, syscall.SIGTERM)...)
	signals.OutliveReader() // of the log
	cpus.Spare()
	w, err := worker.Open(context.Background(), c)
	if err != nil {
		return hostError(orWithout(err))
	}
	c.Logger.Info("the worker has started", "name", c.Name, "key", w.Key(), "url", c.URL)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := make(chan struct{})
	go f.endOnSignals(c.Logger, caught, first, cancel)
	select {
	case <-first:
	case <-w.DrainAsked():
		c.Logger.Info("draining: the daemon has asked for it")
	}
	if err := w.Drain(ctx); err != nil {
		busy, unread := w.Load()
		c.Logger.Warn("calls are ended", "running", busy, "resultsNotTaken", unread)
	}
	return leave(w.Close(), w.DrainAsked(), c.Logger)
}

// leave is the end of a worker that was closed. One that was to be drained has ended well
// whatever it could not remove, such as the cgroup of a process that cannot be killed: its
// service is not to start it again.
func leave(err error, drained <-chan struct{}, logger hclog.Logger) error {
	select {
	case <-drained:
		if err != nil {
			logger.Warn("the worker is drained, and has left something behind", "error", err)
		}
		return nil
	default:
	}
	if err != nil {
		return hostError(err)
	}
	return nil
}

// endOnSignals closes first at the first signal, and has the worker end after --stop-wait from
// then on, or at the second.
func (f *workerFlags) endOnSignals(logger hclog.Logger, caught <-chan os.Signal, first chan<- struct{}, end func()) {
	logger.Info("stopping", "signal", (<-caught).String())
	close(first)
	select {
	case <-time.After(f.wait):
	case <-caught:
	}
	end()
}

func (f *workerFlags) config() (c worker.Config, err error) {
	logs := serveFlags{logJSON: f.logJSON, logLevel: f.logLevel, given: f.given}
	if c.Logger, err = logs.logger(); err != nil {
		return c, err
	}
	if f.name == "" {
		host, _ := os.Hostname()
		f.name, _, _ = strings.Cut(strings.ToLower(host), ".")
	}
	if err := f.complete(); err != nil {
		return c, err
	}
	c.Name, c.URL, c.CA, c.KeyFile, c.Callers = f.name, f.url, f.ca, f.key, f.callers
	c.DrainBy = f.drainBy
	c.Slots, c.Lease, c.Version = f.slots, f.lease, readVersion().Version
	if c.Labels, err = labels(f.labels); err != nil {
		return c, err
	}
	if err := f.ceilings(&c.Ceilings); err != nil {
		return c, err
	}
	c.Dir = cmp.Or(f.dir, filepath.Join(runtimeDir(), "worker-"+f.name))
	c.CommandTool = catalog.CommandTool
	if c.Adapter, err = ownProgram(); err != nil {
		return c, err
	}
	c.Supervisor = supervisor.Config{NoCgroup: f.noCgroup, Logger: c.Logger.Named("supervisor"), Admission: supervisor.Admission{Running: f.slots}}
	own, err := f.own(c.Dir)
	c.Supervisor.Own = func() sandbox.Own { return own }
	return c, errors.Join(err, c.Check())
}

// complete says what has to be given, and is not.
func (f *workerFlags) complete() error {
	switch {
	case f.key == "":
		return errors.New("the worker needs a key: make one with toolhost fleet key FILE, and give --key FILE")
	case f.given.Changed("slots") && f.slots < 1:
		return fmt.Errorf("--slots %d: give 1 or more", f.slots)
	case f.wait < 0:
		return fmt.Errorf("--stop-wait %s: give 0 or more", f.wait)
	}
	return nil
}

// own are the worker's files that no call sees, beside those of other programs of this
// user.
func (f *workerFlags) own(dir string) (own sandbox.Own, err error) {
	machine, err := config.ThisMachine()
	if err != nil {
		return own, err
	}
	loaded := &config.Loaded{}
	loaded.Sources, loaded.Folders = machine.Standard()
	for path, to := range map[string]*string{f.key: &loaded.Fleet.Key, f.ca: &loaded.Fleet.CA} {
		if path == "" {
			continue
		}
		if *to, err = filepath.Abs(path); err != nil {
			return own, err
		}
	}
	own = daemon.Own(loaded, "")
	if dir, err = filepath.Abs(dir); err == nil {
		own.Hidden = append(own.Hidden, dir)
	}
	return own, err
}

func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		return filepath.Join(dir, "toolhost")
	}
	if os.Geteuid() != 0 {
		return filepath.Join(os.TempDir(), fmt.Sprintf("toolhost-%d", os.Geteuid()))
	}
	return "/run/toolhost"
}

// nameLabel is the label that each worker has with its name.
const nameLabel = "worker"

func labels(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, each := range list {
		name, value, ok := strings.Cut(each, "=")
		other, twice := out[name]
		switch wrong := config.WrongLabel(name); {
		case !ok || wrong != "":
			return nil, fmt.Errorf("--label %q: give NAME=VALUE, such as gpu=a100", each)
		case name == nameLabel:
			return nil, fmt.Errorf("--label %q: each worker has this label with its name: leave it out, or give --name", each)
		case twice && other != value:
			return nil, fmt.Errorf("--label %s has two values, %q and %q: leave one of them out", name, other, value)
		}
		out[name] = value
	}
	return out, nil
}

// ceilingKeys are of limits that a worker grants at most.
var ceilingKeys = keys{"max-memory": "memory", "max-cpu": "cpu"}

func (f *workerFlags) ceilings(c *worker.Ceilings) error {
	c.Pids, c.Timeout = f.pids, f.timeout
	for _, path := range slices.Concat(f.read, f.write) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("--read or --write %q is relative: give a path that begins with /", path)
		}
	}
	c.Read, c.Write = f.read, f.write
	said := append(ceilingKeys.layer(f.given), config.Flag{Key: "limits.network", Values: f.network, Name: "--network"})
	loaded, err := config.OfFlags(said)
	if err != nil {
		return err
	}
	limits := loaded.Default.Limits
	c.MemoryBytes, c.CPUPercent, c.Network = limits.MemoryBytes, limits.CPUPercent, loaded.Config.Ceiling
	if c.MemoryBytes == supervisor.Unlimited || c.CPUPercent == supervisor.Unlimited {
		return errors.New("--max-memory and --max-cpu cannot be infinite: give a value such as 4GiB or 200%, or leave them out")
	}
	if c.Pids < 0 || c.Timeout < 0 {
		return errors.New("--max-pids and --max-timeout cannot be negative")
	}
	return nil
}
