package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/cli/top"
	"github.com/toolhost/toolhost/internal/terminal"
)

func newPs() *cobra.Command {
	var asJSON bool
	cmd := daemonCommand(&cobra.Command{
		Use: "ps [flags]", Short: "List what the daemon runs: turns, their calls, and what waits for you",
		Long: `List what the daemon runs: active turns, their calls, and what waits for you. A
turn that runs nothing has one line without a call. Processes that wait for calls
(prestart) are listed by tool.`,
		Args: cmdline.Words(0),
	}, func(cmd *cobra.Command, daemon *remote, _ []string) error {
		list, err := daemon.Running(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return present.JSON(cmd.OutOrStdout(), list, false)
		}
		return printRunning(cmd.OutOrStdout(), list, time.Now())
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/turns/active answers")
	return cmd
}

func printRunning(w io.Writer, list api.Turns, now time.Time) error {
	if err := printTurns(w, list.Turns, now); err != nil {
		return err
	}
	return printPrestarted(w, list.Prestarted)
}

func printTurns(w io.Writer, turns []api.Turn, now time.Time) error {
	rows := [][]string{{"TURN", "CALL", "TOOL", "STATE", "WORKER", "ELAPSED", "MEMORY", "WAITS FOR"}}
	for _, t := range turns {
		if len(t.CurrentTools) == 0 {
			rows = append(rows, []string{terminal.Cell(t.TurnID), "-", "-", "idle", "-", "-", "-", "-"})
		}
		for _, c := range t.CurrentTools {
			rows = append(rows, []string{
				terminal.Cell(t.TurnID), terminal.Cell(c.CallID), terminal.Cell(c.Tool), top.Shown(t, c), terminal.Cell(cmp.Or(c.Worker, "-")),
				cmp.Or(top.Elapsed(c, now), "-"), cmp.Or(top.Memory(c), "-"), cmp.Or(waitsFor(top.Question(t, c.CallID)), "-"),
			})
		}
	}
	rows = withoutEmpty(rows, 4)
	if !present.Fits(rows) {
		rows = questionsBelow(rows)
	}
	return present.Table(w, rows, 2)
}

// withoutEmpty leaves out a column that has nothing in any row but the first.
func withoutEmpty(rows [][]string, column int) [][]string {
	for _, row := range rows[1:] {
		if row[column] != "-" {
			return rows
		}
	}
	for i, row := range rows {
		rows[i] = slices.Delete(row, column, column+1)
	}
	return rows
}

// printPrestarted lists the processes that wait for calls; nothing without any.
func printPrestarted(w io.Writer, list []api.Prestarted) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	rows := [][]string{{"PRESTARTED", "WAITING", "OF"}}
	for _, p := range list {
		rows = append(rows, []string{terminal.Cell(p.Tool), strconv.Itoa(p.Waiting), strconv.Itoa(p.Wanted)})
	}
	return present.Table(w, rows, 0)
}

// questionsBelow gives what calls wait for lines of its own: the ids stay whole.
func questionsBelow(rows [][]string) (list [][]string) {
	for i, row := range rows {
		last := len(row) - 1
		list = append(list, row[:last])
		if i > 0 && row[last] != "-" {
			list = append(list, []string{"waits for " + row[last]})
		}
	}
	return list
}

// maxPrompt is how much of a question a table shows, in columns.
const maxPrompt = 60

func waitsFor(q *api.Interaction) string {
	if q == nil {
		return ""
	}
	return present.Fit(terminal.Cell(string(q.Kind)+": "+q.Prompt), maxPrompt)
}
