//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// fleetCommands are those of a fleet.
func fleetCommands() []*cobra.Command { return []*cobra.Command{newWorker(), newFleet()} }

// fleetKeyName is the caller's key in the state folder.
const fleetKeyName = "fleet.key"

// openFleet is the daemon's fleet.
func openFleet(o daemon.FleetOptions) (daemon.Fleet, error) {
	s := o.Settings
	key, err := callerKey(s.Key, o.State)
	if err != nil {
		return nil, err
	}
	d := &daemonFleet{}
	c := fleet.Config{Supervisor: o.Supervisor, Host: o.Host, URL: s.URL, CA: s.CA, Key: key, WorkersOnly: s.WorkersOnly(), Logger: o.Logger}
	if s.Listen != "" {
		d.engine, err = engine.Start(engine.Config{Listen: s.Listen, Cert: s.Cert, CertKey: s.CertKey, Caller: key.Public(), Workers: s.Workers})
		if err != nil {
			return nil, err
		}
		c.Engine = d.engine
		o.Logger.Info("workers may connect", "address", d.engine.Address(), "caller", key.Public(), "workers", slices.Sorted(maps.Keys(s.Workers)))
	} else {
		o.Logger.Info("workers are looked for", "url", s.URL, "caller", key.Public())
	}
	if d.fleet, err = fleet.Open(context.Background(), c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// callerKey reads the key, or makes the one in the state folder.
func callerKey(path, state string) (*fleet.Key, error) {
	if path == "" {
		if state == "" {
			return nil, errors.New("the fleet needs a key that workers know the daemon by: name its file with fleet: {key: FILE}, or have a state folder")
		}
		path = filepath.Join(state, fleetKeyName)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := createKey(path); err != nil {
				return nil, err
			}
		}
	}
	return fleet.ReadKey(path)
}

func createKey(path string) error {
	key, err := fleet.NewKey()
	if err != nil {
		return err
	}
	return key.WriteFile(path)
}

var _ turn.Running = (*fleet.Call)(nil)

// daemonFleet is a fleet as the daemon knows it.
type daemonFleet struct {
	fleet  *fleet.Fleet
	engine *engine.Engine
}

func (d *daemonFleet) Start(ctx context.Context, r supervisor.Request) turn.Running {
	return d.fleet.Start(ctx, r)
}

func (d *daemonFleet) Workers() []api.Worker { return d.fleet.Workers() }

func (d *daemonFleet) Close() (err error) {
	if d.fleet != nil {
		err = d.fleet.Close()
	}
	if d.engine != nil {
		d.engine.Close()
	}
	return err
}

// fleetWarnings say why the calls of a tool cannot be made by workers, or what these leave out.
func fleetWarnings(loaded *config.Loaded, r supervisor.Request) []string {
	if !loaded.Fleet.On() && len(r.Where) == 0 {
		return nil
	}
	stays := fleet.Stays(r, loaded.Config)
	switch {
	case len(stays) == 0 && r.Prestart > 0:
		return []string{"processes wait for its calls on this machine only (prestart): one that a worker makes has its own"}
	case len(stays) == 0:
		return nil
	case len(r.Where) > 0 || loaded.Fleet.WorkersOnly():
		return []string{"its calls are refused: they are to run on a worker, and no worker can do this yet: " + strings.Join(stays, "; ")}
	}
	return []string{"its calls stay on this machine: no worker can do this yet: " + strings.Join(stays, "; ")}
}

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Make keys for a fleet, and see its workers",
		Long: "Make keys for a fleet: a daemon whose calls are made by workers on other machines\n(toolhost worker), and see the workers of a daemon.",
		Args: callargs.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "key FILE", Short: "Print the public key of FILE, which is made if it is missing",
		Long: `Print the public key of FILE. If there is no such file, a new key is made and kept in
it, for its owner alone. A worker and a daemon know each other by these keys.`,
		Example: "  toolhost fleet key worker.key",
		Args:    callargs.Words(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Lstat(args[0]); errors.Is(err, fs.ErrNotExist) {
				if err := createKey(args[0]); err != nil {
					return hostError(err)
				}
			}
			key, err := fleet.ReadKey(args[0])
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Public())
			return err
		},
	})
	cmd.AddCommand(newFleetWorkers())
	return cmd
}

func newFleetWorkers() *cobra.Command {
	var flags remoteFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "workers [flags]", Short: "List the workers of the daemon's fleet",
		Long: `List the workers of the daemon's fleet that were heard within the hour. A worker is
taking calls, draining (it ends what it has), or suspect: it was not heard for 1.5 s, or
does not hear the daemon.`,
		Args: callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.ask(func(daemon *remote) error {
				list, err := daemon.Workers(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), list, false)
				}
				return printWorkers(cmd.OutOrStdout(), list.Workers)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/workers answers")
	return cmd
}

func printWorkers(w io.Writer, list []api.Worker) error {
	rows := [][]string{{"WORKER", "STATE", "FREE", "SLOTS", "SILENT", "LABELS"}}
	for _, each := range list {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(each.Labels)) {
			labels = append(labels, name+"="+each.Labels[name])
		}
		rows = append(rows, []string{
			each.Name, each.State, strconv.Itoa(each.Free), strconv.Itoa(each.Slots),
			(time.Duration(each.SilentMs) * time.Millisecond).Round(100 * time.Millisecond).String(), terminal.Cell(cmp.Or(strings.Join(labels, " "), "-")),
		})
	}
	return present.Table(w, rows, 2)
}

// workerFlags are those of a worker.
type workerFlags struct {
	name, url, ca, key, dir, logLevel string
	callers, labels                   []string
	memory, cpu                       string
	pids                              int64
	timeout, lease, wait              time.Duration
	slots                             int
	logJSON, noCgroup                 bool
	set                               func(name string) bool
}

func newWorker() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use: "worker", Short: "Run calls for a daemon on another machine",
		Long: `Run calls for a daemon on another machine, or on this one. The daemon has the setting
fleet with this worker's name and public key; the worker is given the daemon's public
key, which that logs when it starts. Calls are bounded by what the daemon's
configuration grants them and by the ceilings given here: one that goes beyond is
refused.

SIGTERM and SIGINT drain the worker: it takes no more calls, and those that run may
finish for as long as --stop-wait says; a second signal ends them.`,
		Example: "  toolhost worker --url tls://10.0.0.5:7420 --ca fleet.pem --name w1 --key w1.key --caller UB...",
		Args:    callargs.Words(0), RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	l := cmd.Flags()
	f.set = l.Changed
	l.StringVar(&f.url, "url", "", "connect to the fleet's engine at `URL`, tls://HOST:PORT, or on this machine nats://127.0.0.1:PORT")
	l.StringVar(&f.ca, "ca", "", "PEM `FILE` with the certificates that the engine's may have been signed by (default the system's)")
	l.StringVar(&f.name, "name", "", "the worker's `NAME` in the daemon's configuration (default this machine's)")
	l.StringVar(&f.key, "key", "", "`FILE` with the worker's key, see toolhost fleet key")
	l.StringSliceVar(&f.callers, "caller", nil, "run calls of the daemon with this public `KEY` (may be given several times)")
	l.StringSliceVar(&f.labels, "label", nil, "a label `NAME=VALUE` that tools may ask for with where (may be given several times)")
	l.IntVar(&f.slots, "slots", 0, "run so many calls at once (default two for each CPU)")
	l.StringVar(&f.memory, "max-memory", "", "refuse calls with a larger memory limit than `SIZE`")
	l.Int64Var(&f.pids, "max-pids", 0, "refuse calls with a larger pids limit than `N`")
	l.StringVar(&f.cpu, "max-cpu", "", "refuse calls with a larger CPU limit than `PERCENT`, such as 200%")
	l.DurationVar(&f.timeout, "max-timeout", 0, "refuse calls with a longer timeout than `DURATION`")
	l.DurationVar(&f.lease, "lease", worker.DefaultLease, "end the calls of a daemon that was not heard for `DURATION`, 2s to 1m")
	l.DurationVar(&f.wait, "stop-wait", 30*time.Second, "how long calls may go on once the worker is to end")
	l.StringVar(&f.dir, "dir", "", "folder `DIR` for the record of what was started (default worker-NAME in /run/toolhost, or in $XDG_RUNTIME_DIR/toolhost)")
	l.BoolVar(&f.noCgroup, noCgroupFlag, false, noCgroupUsage)
	l.BoolVar(&f.logJSON, "log-json", false, "write the log as JSON (default unless stderr is a terminal)")
	l.StringVar(&f.logLevel, "log-level", "info", "log what is of this `LEVEL` and above: trace, debug, info, warn or error")
	l.SortFlags = false
	return cmd
}

func (f *workerFlags) run() error {
	c, err := f.config()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	w, err := worker.Open(context.Background(), c)
	if err != nil {
		return hostError(orWithout(err))
	}
	c.Logger.Info("the worker runs", "name", c.Name, "key", w.Key(), "url", c.URL)
	c.Logger.Info("stopping", "signal", (<-signals).String())
	ctx, cancel := context.WithTimeout(context.Background(), f.wait)
	defer cancel()
	go func() { <-signals; cancel() }()
	if err := w.Drain(ctx); err != nil {
		busy, unread := w.Load()
		c.Logger.Warn("calls are ended", "running", busy, "resultsNotTaken", unread)
	}
	if err := w.Close(); err != nil {
		return hostError(err)
	}
	return nil
}

func (f *workerFlags) config() (c worker.Config, err error) {
	logs := serveFlags{logJSON: f.logJSON, logLevel: f.logLevel, set: f.set}
	if c.Logger, err = logs.logger(); err != nil {
		return c, err
	}
	if f.name == "" {
		host, _ := os.Hostname()
		f.name, _, _ = strings.Cut(strings.ToLower(host), ".")
	}
	if f.key == "" {
		return c, errors.New("the worker needs a key: make one with toolhost fleet key FILE, and give --key FILE")
	}
	c.Name, c.URL, c.CA, c.KeyFile, c.Callers = f.name, f.url, f.ca, f.key, f.callers
	c.Slots, c.Lease, c.Version = f.slots, f.lease, readVersion().Version
	if c.Labels, err = labels(f.labels); err != nil {
		return c, err
	}
	if err := f.ceilings(&c.Ceilings); err != nil {
		return c, err
	}
	c.Dir = cmp.Or(f.dir, filepath.Join(runtimeDir(), "worker-"+f.name))
	c.CommandTool = catalog.CommandTool
	c.Supervisor = supervisor.Config{NoCgroup: f.noCgroup, Logger: c.Logger.Named("supervisor"), Admission: supervisor.Admission{Running: f.slots}}
	return c, c.Check()
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

func labels(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, each := range list {
		name, value, ok := strings.Cut(each, "=")
		if wrong := config.WrongLabel(name); !ok || wrong != "" {
			return nil, fmt.Errorf("--label %q: give NAME=VALUE, such as gpu=a100", each)
		}
		out[name] = value
	}
	return out, nil
}

func (f *workerFlags) ceilings(c *worker.Ceilings) error {
	c.Pids, c.Timeout = f.pids, f.timeout
	for _, v := range []struct {
		flag, key, value string
		into             *int64
	}{{"--max-memory", "memory", f.memory, &c.MemoryBytes}, {"--max-cpu", "cpu", f.cpu, &c.CPUPercent}} {
		if v.value == "" {
			continue
		}
		n, wrong := config.Limit(v.key, v.value)
		if wrong != "" || n == supervisor.Unlimited {
			return fmt.Errorf("%s %q is not a ceiling: give a positive value such as 4GiB, or 200%%", v.flag, v.value)
		}
		*v.into = n
	}
	if c.Pids < 0 || c.Timeout < 0 {
		return errors.New("--max-pids and --max-timeout cannot be negative")
	}
	return nil
}
