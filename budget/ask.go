package budget

import (
	"cmp"
	"slices"
	"time"
)

// Layer says who asks for a timeout. Of several, the highest that asks decides:
// call, client, global, standard.
type Layer string

const (
	// LayerCall is one call: the host's own wish for it, or the model's.
	LayerCall Layer = "call"
	// LayerClient is the client that makes the calls, as its constructor was told.
	LayerClient Layer = "client"
	// LayerGlobal is the operator: config file, environment, command line.
	LayerGlobal Layer = "global"
	// LayerStandard is the profile itself. Nobody asks in it.
	LayerStandard Layer = "standard"
	// LayerHint is the tool's own hint. It is heard only where no other layer asks
	// for a timeout, and then decides instead of the profile's default.
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

// Ask is what one layer wants. Of two asks with the same layer and rank, the
// later one in the list counts, as with repeated flags.
type Ask struct {
	// Layer says who asks. An Ask of no known layer is put aside with a warning.
	Layer Layer
	// Rank places the Ask within LayerGlobal; default RankProfile.
	Rank Rank
	// Timeout is the value asked for. 0 and [Infinite] ask for no timeout at all,
	// which only a tool's entry of the operator's may have. Unless TimeoutUnset is
	// true, the zero value is such a 0.
	Timeout time.Duration
	// TimeoutUnset is for an Ask that only sets Min, Max or Soft.
	TimeoutUnset bool
	// Min and Max move the bounds if the operator sets them; 0 or less moves nothing,
	// and neither can be infinite. A call or a client may only lower Max, down to the
	// minimum, and that bounds the timeout from every source; its Min, and both of a
	// hint, are not heard.
	Min, Max time.Duration
	// Left says that Max is what is left of a timeout that was settled before: it holds
	// below the minimum, too, and without a warning.
	Left bool
	// Soft is the soft budget asked for; 0 or less asks for none. It is chosen
	// apart from the timeout, by the same precedence.
	Soft time.Duration
	// Detail says where the value stands: "--timeout", "toolhost.yaml:12".
	Detail string
}

// height orders layers; 0 is for those that cannot ask.
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
