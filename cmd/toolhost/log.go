package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/turn"
)

type logFlags struct {
	state, tool, status string
	since               time.Duration
	limit               int
	json, follow        bool
}

func newLog() *cobra.Command {
	var flags logFlags
	cmd := &cobra.Command{
		Use: "log [flags] [TURN]", Short: "Show what a journal has: turns, or one turn as a time line",
		Example: "  toolhost log --state DIR\n  toolhost log --state DIR --status timeout --since 24h\n  toolhost log --state DIR TURN\n  toolhost log --state DIR --follow",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd.OutOrStdout(), strings.Join(args, ""))
		},
	}
	cmd.PersistentFlags().StringVar(&flags.state, "state", defaultStateDir(), "folder of the journal")
	cmd.Flags().StringVar(&flags.tool, "tool", "", "only turns with a call of this tool")
	cmd.Flags().StringVar(&flags.status, "status", "", "only turns with a call of this status, such as timeout")
	cmd.Flags().DurationVar(&flags.since, "since", 0, "only turns that began within this time")
	cmd.Flags().IntVar(&flags.limit, "limit", 20, "how many turns")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON, one object a line")
	cmd.Flags().BoolVar(&flags.follow, "follow", false, "go on with what happens")
	cmd.AddCommand(newReplay(&flags))
	return cmd
}

func newReplay(flags *logFlags) *cobra.Command {
	return &cobra.Command{
		Use: "replay TURN", Short: "Print a turn's events exactly as they were shown", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(func(r *journal.Reader) error {
				var failed error
				err := r.Events(args[0], 0, func(e journal.Event) bool {
					_, failed = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.JSON)
					return failed == nil
				})
				return errors.Join(err, failed)
			})
		},
	}
}

func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/toolhost"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "toolhost")
	}
	return filepath.Join(os.Getenv("HOME"), ".local", "state", "toolhost")
}

func (f *logFlags) with(do func(*journal.Reader) error) error {
	reader, err := journal.OpenReader(f.state)
	if err != nil {
		return usageError("%w", err)
	}
	defer reader.Close()
	if err := do(reader); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

func (f *logFlags) run(w io.Writer, id string) error {
	return f.with(func(r *journal.Reader) error {
		switch {
		case f.follow:
			return f.goOn(w, r, id)
		case id != "":
			return f.timeLine(w, r, id)
		}
		return f.list(w, r)
	})
}

func (f *logFlags) list(w io.Writer, r *journal.Reader) error {
	filter := journal.Filter{Tool: f.tool, Status: f.status, Limit: f.limit}
	if f.since > 0 {
		filter.Since = time.Now().Add(-f.since)
	}
	turns, err := r.Turns(filter)
	if err != nil {
		return err
	}
	if f.json {
		out := json.NewEncoder(w)
		for _, t := range turns {
			if err := out.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TURN\tSTARTED\tTOOK\tCALLS\tOUTCOMES\tEND")
	for _, t := range turns {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", oneLine(t.TurnID), t.Started.Local().Format(time.DateTime), took(t), t.Calls, outcomes(t.Outcomes), strings.TrimSpace(string(t.State)+" "+t.Reason))
	}
	return table.Flush()
}

func took(t journal.TurnSummary) string {
	if t.Ended.IsZero() {
		return "-"
	}
	return t.Ended.Sub(t.Started).Round(time.Millisecond).String()
}

func outcomes(counts map[string]int) string {
	var parts []string
	for status, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, status))
	}
	return strings.Join(sorted(parts), ", ")
}

// timeLine prints a turn's events with the time since it began.
func (f *logFlags) timeLine(w io.Writer, r *journal.Reader, id string) error {
	var began time.Time
	var failed error
	err := r.Events(id, 0, func(e journal.Event) bool {
		if began.IsZero() {
			began = e.Time
		}
		failed = f.print(w, e, e.Time.Sub(began).Round(time.Millisecond).String())
		return failed == nil
	})
	return errors.Join(err, failed)
}

func (f *logFlags) goOn(w io.Writer, r *journal.Reader, id string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := r.Follow(ctx, journal.FollowOptions{TurnID: id, Last: id == ""}, func(e journal.Event) bool {
		return f.print(w, e, e.Time.Local().Format(time.TimeOnly)) == nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (f *logFlags) print(w io.Writer, e journal.Event, when string) error {
	if f.json {
		_, err := fmt.Fprintf(w, "%s\n", e.JSON)
		return err
	}
	var said turn.Event
	if err := json.Unmarshal(e.JSON, &said); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%9s  %-22s %-14s %-12s %s\n", when, e.Kind, oneLine(e.CallID), oneLine(e.Tool), oneLine(firstLine(telling(said))))
	return err
}

// telling is what an event has to say beside its kind.
func telling(e turn.Event) string {
	var parts []string
	for _, part := range []string{string(e.Status), e.Reason, e.Outcome, e.By, e.Message, e.Display} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Content != nil && e.Content.Text != "" {
		parts = append(parts, e.Content.Text)
	}
	return strings.Join(parts, "  ")
}
