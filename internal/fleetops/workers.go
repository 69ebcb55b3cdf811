package fleetops

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

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
)

// PrintWorkers lists the workers that a daemon hears.
func PrintWorkers(w io.Writer, list api.Workers) error {
	rows := [][]string{{"WORKER", "STATE", "FREE", "SLOTS", "SILENT", "LABELS"}}
	var troubles []string
	if why := list.Engine.Trouble; why != "" {
		troubles = append(troubles, "the daemon is not connected to the NATS servers: "+terminal.OneLine(why))
	}
	for _, each := range list.Workers {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(each.Labels)) {
			labels = append(labels, name+"="+each.Labels[name])
		}
		rows = append(rows, []string{
			each.Name, each.State, strconv.Itoa(each.Free), strconv.Itoa(each.Slots),
			silence(each.SilentMs).String(), terminal.Cell(cmp.Or(strings.Join(labels, " "), "-")),
		})
		if each.Trouble != "" {
			troubles = append(troubles, each.Name+": "+terminal.OneLine(each.Trouble))
		}
	}
	if err := present.Table(w, rows, 2); err != nil {
		return err
	}
	for _, line := range troubles {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// silence is for how long something was not heard, as it is shown.
func silence(ms int64) time.Duration {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond)
}

// AwaitDrain waits until a worker that is to drain has left the fleet, or has drained for
// this daemon. That it will not has an exit code, unlike an error of the daemon's.
func AwaitDrain(ctx context.Context, daemon *client.Client, worker string) error {
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
	failed := func(format string, args ...any) (bool, error) {
		return false, exit.With(exit.Failed, fmt.Errorf("worker %s "+format, append([]any{worker}, args...)...))
	}
	switch silent := time.Duration(list[i].SilentMs) * time.Millisecond; {
	case list[i].State == api.WorkerTaking: // what was asked takes nothing
		return failed("takes calls, for it was started again, or the daemon was: drain it again")
	case list[i].State == api.WorkerIncompatible:
		return failed("was started again, with another release")
	case silent > deadAfter:
		return failed("did not drain: no sign of life for %s; see toolhost doctor --fleet", silent.Round(time.Second))
	}
	return false, nil
}
