// Package logview shows what is on record of turns: a list of them, the time line of
// one, events as they happen, and the chain of audit records.
package logview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Source is what is read: the journals of a folder, or those of a daemon.
type Source interface {
	Turns(f api.Filter) ([]api.TurnSummary, error)
	Events(turnID string, after int64, yield func(journal.Event) bool) error
	Result(turnID, callID string) ([]byte, error)
	Follow(ctx context.Context, o journal.FollowOptions, yield func(journal.Event) bool) error
}

// View shows a source on Out.
type View struct {
	Source Source
	Out    io.Writer
	// Tool and Status leave out turns without such a call, and of a turn the events of
	// other calls; empty leaves out none.
	Tool, Status string
	// JSON has an object printed for each turn or event, instead of lines for people.
	JSON bool
}

// List shows the last turns, at most limit, that began within since; 0 means at any time.
func (v View) List(since time.Duration, limit int) error {
	filter := api.Filter{Tool: v.Tool, Status: v.Status, Limit: limit}
	if since > 0 {
		filter.Since = time.Now().Add(-since)
	}
	turns, err := v.Source.Turns(filter)
	if err != nil {
		return err
	}
	if v.JSON {
		out := json.NewEncoder(terminal.JSON(v.Out))
		for _, t := range turns {
			if err := out.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(v.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TURN\tSTARTED\tTOOK\tCALLS\tOUTCOMES\tAGENT\tEND")
	for _, t := range turns {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", terminal.Cell(t.TurnID), t.Started.Local().Format(time.DateTime), took(t), t.Calls, outcomes(t.Outcomes), terminal.Cell(cmp.Or(t.AgentID, "-")), end(t))
	}
	return table.Flush()
}

func end(t api.TurnSummary) string {
	if t.HostDied {
		return "open, its host died"
	}
	return strings.TrimSpace(string(t.State) + " " + string(t.Reason))
}

func took(t api.TurnSummary) string {
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
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Result shows that of a call, which is JSON.
func (v View) Result(turnID, callID string) error {
	raw, err := v.Source.Result(turnID, callID)
	if err != nil {
		return err
	}
	return present.Raw(v.Out, raw)
}

// Replay shows all events of a turn, as JSON.
func (v View) Replay(turnID string) error {
	return v.events(turnID, func(e journal.Event) error { return present.Raw(v.Out, e.JSON) })
}

// events does something with each event of a turn, until it fails.
func (v View) events(turnID string, do func(journal.Event) error) error {
	var failed error
	err := v.Source.Events(turnID, 0, func(e journal.Event) bool {
		failed = do(e)
		return failed == nil
	})
	return errors.Join(err, failed)
}
