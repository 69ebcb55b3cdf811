package daemon

import (
	"maps"
	"slices"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
)

// CheckCeiling finds the tools whose calls would all be refused for their network. A
// worker has a ceiling of its own.
func CheckCeiling(loaded *config.Loaded) error {
	var problems config.Problems
	check := func(t config.Tool) {
		if loaded.OnWorkersOnly(t) {
			return
		}
		if err := loaded.Config.Ceiling.Refuses(t.Sandbox); err != nil {
			key := "network"
			if t.Sandbox.Tier == sandbox.TierNone { // which has the host's
				key = "tier"
			}
			p := t.Problem(key, err)
			if !slices.Contains(problems, p) { // of a class, or of a server
				problems = append(problems, p)
			}
		}
	}
	for _, t := range loaded.Tools {
		check(t)
		for _, name := range slices.Sorted(maps.Keys(t.MCP.Tools)) {
			check(t.MCP.Tools[name])
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}
