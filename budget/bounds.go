package budget

import (
	"cmp"
	"slices"
	"time"
)

// rankStandard is below all of the operator's: the profile's own bounds.
const rankStandard Rank = -1

// bound is one end of the range that asks are held to, and who put it there.
type bound struct {
	value  time.Duration
	rank   Rank
	detail string
}

type bounds struct{ min, max bound }

// of says whose bound it is: the place where the operator has set it, or the
// profile.
func (b bound) of(p Profile) string { return cmp.Or(b.detail, p.Name) }

// operatorBounds gives the profile's bounds as the operator has moved them:
// explicitly, or by a timeout outside of bounds that rank lower than it does.
func operatorBounds(p Profile, sorted []Ask, w *warnings) bounds {
	b := bounds{
		min: bound{value: p.Min, rank: rankStandard},
		max: bound{value: p.Max, rank: rankStandard},
	}
	for _, a := range slices.Backward(sorted) {
		if a.global() {
			b.min.set(a.Min, a)
			b.max.set(a.Max, a)
		}
	}
	b.reconcile(p, w)
	b.stretch(sorted)
	for _, a := range slices.Backward(sorted) {
		if a.global() {
			b.min.refuseInfinite("minimum", a.Min, a, p, w)
			b.max.refuseInfinite("maximum", a.Max, a, p, w)
		}
	}
	return b
}

func (b *bound) set(value time.Duration, a Ask) {
	if value > 0 && value < Infinite {
		*b = bound{value, a.Rank, a.Detail}
	}
}

// refuseInfinite says that a bound stays finite: without a maximum, anyone's ask
// could lift the timeout.
func (b bound) refuseInfinite(name string, value time.Duration, a Ask, p Profile, w *warnings) {
	if value == Infinite && a.Rank >= b.rank {
		w.addf("%s infinite of %s set by %s is not finite: %s is used", name, p.Name, a.who(), Format(b.value))
	}
}

// reconcile lets the higher rank have its way where min is above max; of equals,
// max, which stops sooner. It warns only if that overrules the operator.
func (b *bounds) reconcile(p Profile, w *warnings) {
	if b.min.value <= b.max.value {
		return
	}
	name, loser, winner := "minimum", &b.min, b.max
	if b.min.rank > b.max.rank {
		name, loser, winner = "maximum", &b.max, b.min
	}
	if loser.rank > rankStandard {
		w.addf("%s %s of %s set by %s contradicts %s set by %s: %s is used", name, Format(loser.value), p.Name,
			who(LayerGlobal, loser.detail), Format(winner.value), who(LayerGlobal, winner.detail), Format(winner.value))
	}
	*loser = winner
}

// stretch makes room for the operator's timeout, so that it is in force as given
// and a caller's ask is held to the same range.
func (b *bounds) stretch(sorted []Ask) {
	i := slices.IndexFunc(sorted, func(a Ask) bool { return a.global() && !a.TimeoutUnset && a.Timeout != 0 })
	if i < 0 || sorted[i].Timeout < 0 || sorted[i].Timeout == Infinite {
		return
	}
	a := sorted[i]
	if a.Timeout < b.min.value && a.Rank > b.min.rank {
		b.min = bound{a.Timeout, a.Rank, a.Detail}
	}
	if a.Timeout > b.max.value && a.Rank > b.max.rank {
		b.max = bound{a.Timeout, a.Rank, a.Detail}
	}
}
