package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/logview"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

type logFlags struct {
	journal      journalFlags
	socket       string // of a daemon to be asked instead
	config       string
	tool, status string
	since        time.Duration
	limit        int
	json, follow bool

	set func(name string) bool
}

func newLog() *cobra.Command {
	var flags logFlags
	cmd := &cobra.Command{
		Use: "log [flags] [TURN [CALL]]", Short: "Show recorded turns, the time line of a turn, or the result of a call",
		Example: "  toolhost log\n  toolhost log --status timeout --since 24h\n  toolhost log TURN\n  toolhost log TURN CALL\n  toolhost log --follow",
		Args:    cmdline.Words(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return flags.run(cmd.OutOrStdout(), args) },
	}
	cmd.PersistentFlags().StringVar(&flags.journal.state, "state", "", "folder of the journals (default that of turn)")
	cmd.PersistentFlags().StringVar(&flags.config, "config", "", "read this toolhost.yaml (see toolhost config)")
	flags.journal.byDefault = true
	flags.registerSocket(cmd)
	flags.set = cmd.Flags().Changed
	cmd.Flags().StringVar(&flags.tool, "tool", "", "only turns with a call of this tool; of a turn and with --follow, only events of its calls")
	cmd.Flags().StringVar(&flags.status, "status", "", "only turns with a call of this status, such as timeout; of a turn, only events of such calls; with --follow, only their ends")
	cmdline.DurationVar(cmd.Flags(), &flags.since, "since", 0, "only turns that began within this time")
	cmd.Flags().IntVar(&flags.limit, "limit", 20, "how many turns")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON, one object a line")
	cmd.Flags().BoolVar(&flags.follow, "follow", false, "keep showing what happens")
	cmd.AddCommand(newReplay(&flags), newPrune(&flags), newVerify(&flags))
	return cmd
}

func (f *logFlags) registerSocket(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.socket, "socket", "", "ask the daemon at this `PATH` for its journal, instead of reading folders (default $"+socketVariable+", where no folder and no configuration is named)")
}

func newReplay(flags *logFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay TURN", Short: "Print a turn's events exactly as they were shown", Args: cmdline.Words(1, "TURN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(func(l logview.Source) error {
				return logview.View{Source: l, Out: cmd.OutOrStdout()}.Replay(args[0])
			})
		},
	}
	flags.registerSocket(cmd)
	return cmd
}

// configure reads where journals are, and how long they are kept; with the flag without
// it need not be read.
func (f *logFlags) configure(without string) (err error) {
	f.journal.configured, err = loadFor(config.Options{Path: f.config, Flags: retentionKeys.layer(f.journal.given)}, without, "state", "journal")
	return err
}

// dir is the folder that is read.
func (f *logFlags) dir() (string, error) {
	if f.journal.state == "" && f.journal.configured == nil {
		if err := f.configure("--state"); err != nil {
			return "", err
		}
	}
	dir, err := f.journal.dir()
	if err == nil && dir == "" {
		err = exit.Usagef("no journal: state is disabled; name a folder with --state")
	}
	return dir, err
}

func (f *logFlags) with(do func(logview.Source) error) error {
	if f.journal.state != "" && f.socket != "" {
		return exit.Usagef("--state and --socket contradict one another: leave one of them out")
	}
	daemon := remoteFlags{socket: f.socket, config: f.config}
	if f.journal.state == "" && os.Getenv(state.Variable) == "" {
		daemon.socket, _ = daemon.named()
	}
	if daemon.socket != "" {
		return daemon.ask(func(r *remote) error { return do(logview.Remote(r.Client)) })
	}
	dir, err := f.dir()
	if err != nil {
		return err
	}
	l, err := state.OpenLog(dir)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	defer l.Close()
	warn(l.Unreadable)
	err = do(l)
	warn(l.Lacking())
	if _, own := errors.AsType[*exit.Error](err); own || err == nil {
		return err
	}
	return exit.With(exit.Failed, err)
}

// warn says on stderr what is left out.
func warn(of []error) {
	for _, err := range of {
		fmt.Fprintln(os.Stderr, "toolhost: "+terminal.OneLine(err.Error()))
	}
}

// check refuses what nothing on record can match, and what would mean nothing
// beside the arguments.
func (f *logFlags) check(args []string) error {
	switch {
	case len(args) == 2:
		if err := f.alone("a call's result", "tool", "status", "since", "limit", "follow"); err != nil {
			return err
		}
	case len(args) == 1:
		if err := f.alone("one turn", "since", "limit"); err != nil {
			return err
		}
	case f.follow:
		if err := f.alone("--follow", "since", "limit"); err != nil {
			return err
		}
	}
	if f.follow && f.status == string(api.StatusOpen) {
		return exit.Usagef("--status %s and --follow contradict one another, as all that is followed is open: leave one of them out", f.status)
	}
	switch all := journal.Statuses(); {
	case f.status != "" && !slices.Contains(all, f.status):
		return exit.Usagef("unknown --status %q: must be one of %s", f.status, strings.Join(all, ", "))
	case f.limit < 1 || f.limit > journal.MaxLimit:
		return exit.Usagef("--limit %d is out of bounds: give 1 to %d", f.limit, journal.MaxLimit)
	case f.since < 0:
		return exit.Usagef("--since %s is negative: give how far to look back, such as 24h", f.since)
	}
	return nil
}

// alone refuses flags that mean nothing for what is shown.
func (f *logFlags) alone(what string, names ...string) error {
	for _, name := range names {
		if f.set(name) {
			return exit.Usagef("--%s means nothing for %s: leave it out", name, what)
		}
	}
	return nil
}

func (f *logFlags) run(w io.Writer, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	return f.with(func(l logview.Source) error {
		view := logview.View{Source: l, Out: w, Tool: f.tool, Status: f.status, JSON: f.json}
		id := strings.Join(args[:min(1, len(args))], "")
		switch {
		case len(args) == 2:
			return view.Result(id, args[1])
		case f.follow:
			ctx, stop := signal.NotifyContext(context.Background(), signals.NotIgnored(os.Interrupt, syscall.SIGTERM)...)
			defer stop()
			return view.Follow(ctx, id)
		case id != "":
			return view.TimeLine(id)
		}
		return view.List(f.since, f.limit)
	})
}
