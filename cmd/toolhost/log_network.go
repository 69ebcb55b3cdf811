package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
)

// printNetwork prints, below the event of a call's end, what the call has reached: its
// result has that. A result that is not there, or can't be read, holds up no others.
func (f *logFlags) printNetwork(w io.Writer, l record, e journal.Event) error {
	if f.json || !ends(e) {
		return nil
	}
	raw, err := l.Result(e.TurnID, e.CallID)
	if err != nil {
		return nil
	}
	var r struct {
		Network *api.Network `json:"network"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("the result of the call %q is not JSON: %w", terminal.OneLine(e.CallID), err)
	}
	for _, line := range present.Network(r.Network) {
		if _, err := fmt.Fprintf(w, "%9s  %-22s %-14s %-12s %s\n", "", "network", terminal.OneLine(e.CallID), terminal.OneLine(e.Tool), line); err != nil {
			return err
		}
	}
	return nil
}
