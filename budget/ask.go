package budget

import (
	"cmp"
	"slices"
	"time"
)

// Layer says who asks for a timeout. The highest layer that asks decides: call,
// client, global, standard.
type Layer string

const (
	// LayerCall is one call: the host or the model asks.
	LayerCall Layer = "call"
	// LayerClient is the configuration of the client that makes the calls.
	LayerClient Layer = "client"
	// LayerGlobal is the operator: config file, environment, command line.
	LayerGlobal Layer = "global"
	// LayerStandard is the profile's default. No Ask has it.
	LayerStandard Layer = "standard"
	// LayerHint is the tool's own hint. If no other layer asks for a timeout, it
	// replaces the profile's default.
	LayerHint Layer = "hint"
)

// Rank orders the operator's settings within [LayerGlobal], lowest first. Other
// layers have no ranks.
type Rank int

const (
	RankProfile     Rank = iota // a profile's entry in the config file
	RankClass                   // a class of tools
	RankTool                    // a tool's entry, the only place that may lift a timeout
	RankEnvironment             // a TOOLHOST_* variable
	RankFlag                    // a command-line flag
)

// Ask is the request of one layer. Of two asks with the same layer and rank, the
// later one in the list counts, as with repeated flags.
type Ask struct {
	// Layer says who asks. An Ask of an unknown layer is ignored with a warning.
	Layer Layer
	// Rank places the Ask within LayerGlobal; default RankProfile.
	Rank Rank
	// Timeout is the timeout asked for. 0 and [Infinite] ask for no timeout, which
	// only the operator's entry for a tool may do. A zero Ask therefore asks for no
	// timeout, unless TimeoutUnset is set.
	Timeout time.Duration
	// TimeoutUnset is for an Ask that only sets Min, Max or Soft.
	TimeoutUnset bool
	// Min and Max are the operator's bounds; 0 or less leaves a bound unchanged, and
	// neither can be infinite. A call or a client may only lower Max, down to the
	// minimum, which bounds the timeout from every source; its Min, and both bounds of
	// a hint, are ignored.
	Min, Max time.Duration
	// Left is set if Max is the rest of a timeout that was resolved before: it applies
	// even below the minimum, and without a warning.
	Left bool
	// Soft is the soft budget asked for; 0 or less asks for none. It is resolved
	// separately from the timeout, by the same precedence.
	Soft time.Duration
	// Detail says where the value stands: "--timeout", "toolhost.yaml:12".
	Detail string
}

// height orders layers; it is 0 for layers that cannot ask.
func (a Ask) height() int {
	switch a.Layer {
	case LayerHint:
		return 1
	case LayerGlobal:
		return 2
	case LayerClient:
		return 3
	case LayerCall:
		return 4
	}
	return 0
}

func (a Ask) global() bool { return a.Layer == LayerGlobal }

// mayLift is true where the Ask may make the timeout infinite.
func (a Ask) mayLift(p Profile) bool {
	return a.global() && a.Rank == RankTool && p.InfiniteAllowed
}

// caller is true for the layers that may tighten the bounds but never widen them.
func (a Ask) caller() bool { return a.Layer == LayerCall || a.Layer == LayerClient }

func (a Ask) who() string { return who(a.Layer, a.Detail) }

// wanted is the timeout for a warning: a hint that is beyond all bounds was cut to one.
func (a Ask) wanted() string {
	switch a.Timeout {
	case longestHint:
		return Format(a.Timeout) + " or more"
	case -longestHint:
		return Format(a.Timeout) + " or less"
	}
	return Format(a.Timeout)
}

func who(layer Layer, detail string) string {
	if detail == "" {
		return string(layer)
	}
	return string(layer) + " (" + detail + ")"
}

// byPrecedence gives the asks with the one that is heard first in front. A 0 that
// means infinite becomes [Infinite].
func byPrecedence(p Profile, asks []Ask) []Ask {
	sorted := slices.Clone(asks)
	for i, a := range sorted {
		if a.Timeout == 0 && a.mayLift(p) {
			sorted[i].Timeout = Infinite
		}
	}
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, func(a, b Ask) int {
		if byLayer := cmp.Compare(b.height(), a.height()); byLayer != 0 || !a.global() {
			return byLayer
		}
		return cmp.Compare(b.Rank, a.Rank)
	})
	return sorted
}
