package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/waterfall"
	"github.com/toolhost/toolhost/sandbox/export"
)

// tracing is what --trace asks for: where the time of one call went.
type tracing struct {
	path string
	file *os.File // nil without --trace
	// before are the phases that come before the call's own; mark adds them.
	before []api.Phase
	last   time.Time
}

func (t *tracing) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "trace", "", "show where the time went, and write it to `FILE` in Chrome's trace format")
}

func (t *tracing) begin() { t.last = time.Now() }

// create opens the file before the call, which is not made for a trace that cannot be
// written, but not before it is known that there is a call: an older trace stays.
func (t *tracing) create() (err error) {
	if t.path == "" {
		return nil
	}
	if t.file, err = export.Create(t.path); err != nil {
		return exit.Usagef("cannot write the trace: %w", err)
	}
	return nil
}

// files are those that no call may exchange or write to.
func (t *tracing) files() []string {
	if t.file == nil {
		return nil
	}
	path, err := filepath.Abs(t.path)
	if err != nil {
		return nil
	}
	return []string{path}
}

// mark ends a phase of the command's own.
func (t *tracing) mark(name string) {
	now := time.Now()
	t.before = append(t.before, api.Phase{Name: name, From: t.last, To: now})
	t.last = now
}

// phases are all, from the command's beginning until now.
func (t *tracing) phases(r *api.Result) []api.Phase {
	own, all := r.Marks.Phases(), slices.Clone(t.before)
	if len(own) == 0 { // it was refused before it asked for a slot
		return append(all, api.Phase{Name: "refuse", From: t.last, To: time.Now()})
	}
	all = append(all, api.Phase{Name: "prepare", From: t.last, To: own[0].From})
	return append(append(all, own...), api.Phase{Name: "answer", From: r.Marks.Done, To: time.Now()})
}

// finish writes the trace, and draws it for people.
func (t *tracing) finish(r *api.Result, flags *callFlags) error {
	if t.file == nil {
		return nil
	}
	phases := t.phases(r)
	err := waterfall.Write(t.file, "execute_tool "+r.Tool, phases)
	if err = errors.Join(err, t.file.Close()); err != nil {
		return hostError(fmt.Errorf("cannot write the trace: %w; send it elsewhere with --trace", err))
	}
	if flags.quiet || flags.json || flags.events {
		return nil
	}
	_ = waterfall.Draw(os.Stderr, phases) // nothing else told there fails the command
	return nil
}
