//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
)

func newFleetWorkers() *cobra.Command {
	var asJSON bool
	cmd := daemonCommand(&cobra.Command{
		Use: "workers [flags]", Short: "List the workers of the daemon's fleet",
		Long: `List the workers of the daemon's fleet that were heard within the hour. A worker is
taking calls, draining (it ends what it has), drained (it has none of this daemon's calls
left, and goes on for other daemons), suspect (it was not heard for 1.5 s, or does not
hear the daemon), or incompatible: it is of a version that speaks another protocol, and
gets no calls.`,
		Args: callargs.Words(0),
	}, func(cmd *cobra.Command, daemon *remote, _ []string) error {
		list, err := daemon.Workers(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return present.JSON(cmd.OutOrStdout(), list, false)
		}
		return printWorkers(cmd.OutOrStdout(), list)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/workers answers")
	return cmd
}

func printWorkers(w io.Writer, list api.Workers) error {
	rows := [][]string{{"WORKER", "STATE", "FREE", "SLOTS", "SILENT", "LABELS"}}
	for _, each := range list.Workers {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(each.Labels)) {
			labels = append(labels, name+"="+each.Labels[name])
		}
		rows = append(rows, []string{
			each.Name, each.State, strconv.Itoa(each.Free), strconv.Itoa(each.Slots),
			(time.Duration(each.SilentMs) * time.Millisecond).Round(100 * time.Millisecond).String(), terminal.Cell(cmp.Or(strings.Join(labels, " "), "-")),
		})
	}
	if err := present.Table(w, rows, 2); err != nil {
		return err
	}
	if why := list.Engine.Trouble; why != "" {
		if _, err := fmt.Fprintf(w, "the daemon is not connected to the NATS servers: %s\n", terminal.OneLine(why)); err != nil {
			return err
		}
	}
	for _, each := range list.Workers {
		if each.Trouble != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", each.Name, terminal.OneLine(each.Trouble)); err != nil {
				return err
			}
		}
	}
	return nil
}

func newFleetDrain() *cobra.Command {
	var wait bool
	cmd := daemonCommand(&cobra.Command{
		Use: "drain [flags] WORKER", Short: "Drain a worker: it takes no more calls, and ends when it has none",
		Long: `Have a worker of the daemon's fleet take no more calls, and end with status 0 when those
that it has are over and their results are taken. Calls go elsewhere until it is started
again. SIGTERM at the worker does the same, but for --stop-wait at most.

A worker that other daemons have calls made by as well goes on for these: it takes no more
calls of this daemon, and ends once all have drained it. Its owner can let a daemon end it
alone, with --drain-by.`,
		Example: "  toolhost fleet drain --wait w1",
		Args:    callargs.Words(1, "WORKER"),
	}, func(cmd *cobra.Command, daemon *remote, args []string) error {
		if err := daemon.DrainWorker(cmd.Context(), args[0]); err != nil || !wait {
			return err
		}
		return gone(cmd.Context(), daemon, args[0])
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the worker has ended, or has none of this daemon's calls and goes on for others")
	return cmd
}

// gone waits until a worker that is to drain has left the fleet, or has drained for this
// daemon.
func gone(ctx context.Context, daemon *remote, worker string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := daemon.Workers(ctx)
		if err != nil {
			return err
		}
		if over, err := isGone(list.Workers, worker); over || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deadAfter is when a worker that is not heard is not waited for any more: the longest lease
// that one can have.
const deadAfter = time.Minute

// isGone says whether a worker that is to drain has done so; an error is that it will not.
func isGone(list []api.Worker, worker string) (bool, error) {
	i := slices.IndexFunc(list, func(w api.Worker) bool { return w.Name == worker })
	if i < 0 || list[i].State == api.WorkerDrained {
		return true, nil
	}
	switch silent := time.Duration(list[i].SilentMs) * time.Millisecond; {
	case list[i].State == api.WorkerTaking: // what was asked takes nothing
		return false, exit.With(exit.Failed, fmt.Errorf("worker %s takes calls, for it was started again, or the daemon was: drain it again", worker))
	case list[i].State == api.WorkerIncompatible:
		return false, exit.With(exit.Failed, fmt.Errorf("worker %s was started again, with another release", worker))
	case silent > deadAfter:
		return false, exit.With(exit.Failed, fmt.Errorf("worker %s did not drain: no sign of life for %s; see toolhost doctor --fleet", worker, silent.Round(time.Second)))
	}
	return false, nil
}

func newFleetRemove() *cobra.Command {
	return daemonCommand(&cobra.Command{
		Use: "remove [flags] WORKER", Short: "Take a worker out of the fleet at once, and for good",
		Long: `Take a worker out of the daemon's fleet at once, and for good: its connections are
ended, its calls are lost and end with its lease, and its key does not let it in any more,
though the configuration names it. To have it back, give it another key. Where the fleet
has NATS servers of its own (fleet: url), take the key out of their configuration as well.`,
		Example: "  toolhost fleet remove w1",
		Args:    callargs.Words(1, "WORKER"),
	}, func(cmd *cobra.Command, daemon *remote, args []string) error {
		if err := daemon.RemoveWorker(cmd.Context(), args[0]); err != nil {
			return err
		}
		also := ""
		if list, err := daemon.Workers(cmd.Context()); err == nil && list.Engine.URL != "" {
			also = ", and give the NATS servers what toolhost fleet nats-config prints: they let its key in until then"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed %s: take it out of fleet.workers, too%s\n", terminal.OneLine(args[0]), also)
		return err
	})
}
