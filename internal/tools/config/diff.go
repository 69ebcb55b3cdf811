package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Diff is what a newly loaded configuration changes. Places of settings don't
// count, only what they say.
type Diff struct {
	// Added, Removed and Changed are names of tools.
	Added, Removed, Changed []string
	// Settings are those that are not a single tool's, by their paths; of these,
	// a running host takes Restart up only when it is started anew.
	Settings, Restart []string
}

// Compare tells what differs between two configurations. A tool whose host-wide
// limits have changed has changed, too.
func Compare(before, after *Loaded) Diff {
	var d Diff
	for _, t := range after.Tools {
		old, ok := before.Tool(t.Name)
		switch {
		case !ok:
			d.Added = append(d.Added, t.Name)
		case !sameTool(*old, t):
			d.Changed = append(d.Changed, t.Name)
		}
	}
	for _, t := range before.Tools {
		if _, ok := after.Tool(t.Name); !ok {
			d.Removed = append(d.Removed, t.Name)
		}
	}
	for _, path := range differing(before.set, after.set) {
		d.Settings = append(d.Settings, path)
		if needsRestart(path) {
			d.Restart = append(d.Restart, path)
		}
	}
	return d
}

// needsRestart says whether the key of a setting, or a mapping around it, asks
// for a restart.
func needsRestart(path string) bool {
	keys := rootKeys
	for name := range strings.SplitSeq(path, ".") {
		k := find(keys, name)
		if k == nil { // a name that the author chose
			continue
		}
		if k.restart {
			return true
		}
		keys = k.keys
	}
	return false
}

func sameTool(a, b Tool) bool {
	if a.Type != b.Type || len(differing(a.settings, b.settings)) > 0 || !reflect.DeepEqual(a.Command, b.Command) ||
		!slices.Equal(a.MCP.Argv, b.MCP.Argv) || len(a.MCP.Tools) != len(b.MCP.Tools) {
		return false
	}
	for name, one := range a.MCP.Tools {
		other, ok := b.MCP.Tools[name]
		if !ok || !sameTool(one, other) {
			return false
		}
	}
	return true
}

// differing lists the paths at which two layers say different things.
func differing(a, b layer) []string {
	var paths []string
	for path := range a {
		if other, ok := b[path]; path != includeKey && (!ok || !reflect.DeepEqual(a[path].data, other.data)) {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; path != includeKey && !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
