package fleetops

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pack"
)

// staysFor are the names of what keeps the calls of a tool on this machine.
func staysFor(loaded *config.Loaded, entry config.Tool) (names []string) {
	r := entry.Request()
	if entry.Data { // as the catalogue and the turn set these
		r.Sandbox.Workspace, r.Lock.File = entry.Name, entry.Name
	}
	if entry.ChildTurns {
		r.Host = func(net.Listener) {}
	}
	if r.Keep != nil {
		r.Keep.Notices = func(_, _ string, _ json.RawMessage) {}
	}
	names = fleet.Stays(r, loaded.Config)
	if entry.Type == config.TypePlugin && pack.Is(entry.Plugin.Path) {
		names = append(names, "a pack")
	}
	return names
}

// Warnings say why the calls of a tool cannot be made by workers, or what these leave
// out.
func Warnings(loaded *config.Loaded, entry config.Tool) (warnings []string) {
	if !loaded.Fleet.On() {
		return withoutFleet(entry)
	}
	stays := staysFor(loaded, entry)
	switch {
	case len(stays) > 0 && loaded.OnWorkersOnly(entry):
		return []string{refusedCalls(stays)}
	case len(stays) > 0:
		return []string{"its calls stay on this machine: no worker can do this: " + strings.Join(stays, "; ")}
	}
	if entry.Prestart > 0 {
		warnings = append(warnings, "processes wait for its calls on this machine only (prestart): one that a worker makes has its own")
	}
	if loaded.Config.SpillDir != "" && entry.Request().Limits.SpillBytes > 0 {
		warnings = append(warnings, "output that results do not keep is in files of calls on this machine only (spill): workers write none")
	}
	return warnings
}

// withoutFleet warns of a tool that is for workers where there can be none.
func withoutFleet(entry config.Tool) []string {
	if len(entry.Where) == 0 {
		return nil
	}
	return []string{"its calls are refused: where has them run on a worker, and the configuration has no fleet: set fleet, or leave where out"}
}

func refusedCalls(stays []string) string {
	return "its calls are refused: they are to run on a worker, and no worker can do this: " + strings.Join(stays, "; ")
}

// CheckTools finds the tools whose calls must go to workers, and that none can make.
func CheckTools(loaded *config.Loaded) error {
	if !loaded.Fleet.On() {
		return nil
	}
	var problems config.Problems
	check := func(entry config.Tool) {
		if !loaded.OnWorkersOnly(entry) {
			return
		}
		if stays := staysFor(loaded, entry); len(stays) > 0 {
			problems = append(problems, entry.Problem(errors.New(refusedCalls(stays)+remedyOf(entry))))
		}
	}
	for _, entry := range loaded.Tools {
		check(entry)
		for _, name := range slices.Sorted(maps.Keys(entry.MCP.Tools)) {
			check(entry.MCP.Tools[name])
		}
	}
	return problems.Err()
}

func remedyOf(entry config.Tool) string {
	if len(entry.Where) > 0 {
		return "; take that or where out of the tool's settings"
	}
	return "; take that out, name the tool's worker with where, or set fleet: {local: prefer}"
}
