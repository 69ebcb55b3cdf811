package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/internal/serve/console"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// serveFlags are those of the daemon.
type serveFlags struct {
	config, logLevel  string
	logJSON, noCgroup bool
	journal           journalFlags
	given             *pflag.FlagSet
}

var serveKeys = keys{"socket": "socket.path", "listen": "listen"}

func newServe() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon: call tools over HTTP, and watch them in a browser",
		Long: `Run the daemon. It answers HTTP on a unix socket of mode 0600, and with --listen
on loopback TCP as well, to clients with the token in the file DIR/token of
the state folder. There is one daemon for each state folder.

SIGTERM and SIGINT stop it: it takes no new calls, and those that run may finish
within the setting stop.wait; a second signal ends them, a third one kills them.
SIGHUP reloads the configuration, and leaves running calls alone. Under systemd it
supports Type=notify-reload, the watchdog and socket activation.`,
		Example: "  toolhost serve --config toolhost.yaml\n  toolhost serve --listen 127.0.0.1:7070",
		Args:    cmdline.Words(0), RunE: func(*cobra.Command, []string) error { return flags.serve() },

		Annotations: map[string]string{tellsVariables: "in its log"},
	}
	f := cmd.Flags()
	flags.given = f
	f.StringVar(&flags.config, "config", "", "read this toolhost.yaml (see toolhost config)")
	f.String("socket", "", "listen on the unix socket `PATH` (default $XDG_RUNTIME_DIR/toolhost/toolhost.sock, or /run/toolhost/toolhost.sock as root)")
	f.String("listen", "", "listen on this loopback `ADDRESS` as well, such as 127.0.0.1:7070")
	flags.journal.register(cmd, true)
	f.BoolVar(&flags.noCgroup, noCgroupFlag, false, noCgroupUsage)
	f.BoolVar(&flags.logJSON, "log-json", false, "write the log as JSON (default unless stderr is a terminal)")
	f.StringVar(&flags.logLevel, "log-level", "info", "log at this `LEVEL` and above: trace, debug, info, warn or error")
	f.SortFlags = false
	return cmd
}

func (f *serveFlags) serve() error {
	options, err := f.options()
	if err != nil {
		return err
	}
	signals.OutliveReader() // of the log
	options.Signals, options.Reloads = daemonSignals()
	cpus.Spare()
	if err := daemon.Run(options); err != nil {
		return hostError(orWithout(err))
	}
	return nil
}

// daemonSignals are those that stop a daemon, and those that make it reload: of these, one that
// waits stands for all.
func daemonSignals() (stops, reloads <-chan os.Signal) {
	stop, reload := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(stop, signals.NotIgnored(os.Interrupt, syscall.SIGTERM)...)
	signal.Notify(reload, syscall.SIGHUP)
	return stop, reload
}

func (f *serveFlags) options() (o daemon.Options, err error) {
	if o.Logger, err = f.logger(); err != nil {
		return o, err
	}
	if o.Machine, err = config.ThisMachine(); err != nil {
		return o, hostError(err)
	}
	o.Load = func() (*config.Loaded, error) {
		return config.Load(config.Options{Path: f.config, Machine: &o.Machine, Flags: slices.Concat(serveKeys.layer(f.given), retentionKeys.layer(f.given))})
	}
	if o.Loaded, err = o.Load(); err != nil {
		return o, configError(err)
	}
	for _, w := range o.Loaded.Warnings {
		o.Logger.Warn("configuration: " + w.String())
	}
	if o.Loaded.Path == "" {
		o.Logger.Warn("there are no tools, for want of a toolhost.yaml: " + noFile())
	}
	f.journal.configured = o.Loaded
	if o.Retention, err = f.journal.retention(); err != nil {
		return o, err
	}
	if o.State, err = f.journal.dir(); err != nil {
		return o, err
	}
	if o.State == "" && o.Loaded.Daemon.Listen != "" {
		return o, exit.Usagef("to listen on %s the daemon needs a folder for its token: name one with --state, or leave out --listen", o.Loaded.Daemon.Listen)
	}
	if o.Adapter, err = ownProgram(); err != nil {
		return o, hostError(err)
	}
	if o.NoCgroup = f.noCgroup; o.NoCgroup {
		o.Logger.Warn(noCgroupWarning)
	}
	o.Pages, o.Version = console.Handler(), readVersion().Version
	o.OpenFleet, o.CheckFleet = openFleet, checkFleet
	return o, nil
}

func (f *serveFlags) logger() (hclog.Logger, error) {
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return nil, exit.Usagef("--log-level %q is unknown: give trace, debug, info, warn or error", f.logLevel)
	}
	json := f.logJSON
	if !f.given.Changed("log-json") {
		json = !term.IsTerminal(int(os.Stderr.Fd()))
	}
	return hclog.New(&hclog.LoggerOptions{Name: "toolhost", Level: level, Output: os.Stderr, JSONFormat: json}), nil
}
