package budget

import (
	"slices"
	"time"
)

// Resolution is the timeout of one call and how it came about.
type Resolution struct {
	// Profile is the name of the profile used.
	Profile string
	// Requested is the timeout that the highest layer asked for, before any
	// clamping; nil if nobody asked.
	Requested *time.Duration
	// Timeout is the timeout in force: between Min and Max, or [Infinite].
	Timeout time.Duration
	// SoftBudget is the soft budget in force, never longer than Timeout.
	SoftBudget time.Duration
	// Min and Max are the bounds in force.
	Min, Max time.Duration
	// Source is the layer that decided, and SourceDetail the place of its setting.
	// If a bound replaced the default, it is the layer of the bound.
	Source       Layer
	SourceDetail string
	// Clamped is set if the timeout is not what the highest layer asked for, or not
	// the default because a client leaves less; Warnings then says why.
	Clamped bool
	// Warnings has one line for each value that was changed.
	Warnings []string
	// Settings are those of Warnings that the call itself did not cause. They are for
	// the operator.
	Settings []string
}

// Within returns r with its timeout lowered to left, on behalf of a client.
func (r Resolution) Within(left time.Duration, detail string) Resolution {
	if left >= r.Timeout {
		return r
	}
	r.Timeout, r.SoftBudget, r.Max = left, min(r.SoftBudget, left), min(r.Max, left)
	r.Source, r.SourceDetail, r.Clamped = LayerClient, detail, true
	return r
}

// Resolve computes a call's timeout from all asks, by these rules:
//
//   - The highest layer that asks decides, and within the global layer the
//     highest rank.
//   - A timeout below the minimum, even a negative one, becomes the minimum; one
//     above the maximum becomes the maximum; both with a warning.
//   - Only the operator's entry for a tool, in a profile that allows it, makes a
//     timeout infinite, by [Infinite] or 0. Anywhere else 0 is ignored with a
//     warning, so that the next layer decides, and Infinite becomes the maximum.
//   - The operator's timeout moves bounds that no setting of the same or a higher
//     rank has set: with `--timeout 300ms` the timeout is 300 ms, which is then also
//     the minimum for a call's own ask.
//
// It cannot fail. A Profile that [Profile.Validate] refuses is replaced by the
// standard one of [ToolCall], with a warning.
func Resolve(p Profile, asks ...Ask) Resolution {
	s := settlement{profile: p}
	s.repairProfile()
	s.asks = byPrecedence(s.profile, asks)
	s.bounds = operatorBounds(s.profile, s.asks, &s.warnings)
	s.decide()
	s.tighten()
	s.explainPutAside()
	s.SoftBudget = Soft(s.softAsked(), s.Timeout)
	s.Profile, s.Warnings, s.Settings = s.profile.Name, s.warnings, s.ofSettings()
	s.Min, s.Max = s.bounds.min.value, s.bounds.max.value
	return s.Resolution
}

// settlement is a Resolution in the making.
type settlement struct {
	Resolution
	profile  Profile
	asks     []Ask // highest first
	bounds   bounds
	putAside []Ask
	warnings warnings
	own      []string // those of warnings that an ask of the call's has brought about
}

// claim takes the warnings since the first n for an ask of the layer's.
func (s *settlement) claim(n int, layer Layer) {
	if layer == LayerCall {
		s.own = append(s.own, s.warnings[n:]...)
	}
}

func (s *settlement) ofSettings() (list []string) {
	for _, one := range s.warnings {
		if !slices.Contains(s.own, one) {
			list = append(list, one)
		}
	}
	return list
}

func (s *settlement) repairProfile() {
	given := s.profile
	err := given.Validate()
	if err == nil {
		return
	}
	s.profile, _ = Standard(ToolCall)
	if given != (Profile{}) {
		s.warnings.addf("%v: the standard %s is used", err, ToolCall)
	}
}

// decide finds the first ask that can be answered with a timeout.
func (s *settlement) decide() {
	for _, a := range s.asks {
		switch {
		case a.TimeoutUnset, a.Layer == LayerHint && s.Requested != nil:
			continue
		case a.height() == 0:
			s.putAside = append(s.putAside, a)
			continue
		}
		if s.Requested == nil {
			s.Requested = new(a.Timeout)
		}
		if a.Timeout == 0 {
			s.putAside = append(s.putAside, a)
			continue
		}
		before := len(s.warnings)
		s.Timeout, s.Source, s.SourceDetail = s.judge(a), a.Layer, a.Detail
		s.claim(before, a.Layer)
		s.Clamped = s.Timeout != *s.Requested
		return
	}
	s.useDefault()
}

// judge holds one ask to the rules.
func (s *settlement) judge(a Ask) time.Duration {
	lowest, highest := s.bounds.min.value, s.bounds.max.value
	switch {
	case a.Timeout == Infinite && a.mayLift(s.profile) && s.bounds.max.rank < RankTool:
		return Infinite
	case a.Timeout == Infinite:
		s.warnings.addf("timeout infinite asked by %s is not allowed, %s: %s is used", a.who(), s.whyFinite(a), Format(highest))
		return highest
	case a.Timeout < lowest:
		s.warnings.addf("timeout %s asked by %s is below the minimum %s of %s: %s is used",
			a.wanted(), a.who(), Format(lowest), s.bounds.min.of(s.profile), Format(lowest))
		return lowest
	case a.Timeout > highest:
		s.warnings.addf("timeout %s asked by %s is above the maximum %s of %s: %s is used",
			a.wanted(), a.who(), Format(highest), s.bounds.max.of(s.profile), Format(highest))
		return highest
	}
	return a.Timeout
}

func (s *settlement) whyFinite(a Ask) string {
	switch {
	case !s.profile.InfiniteAllowed:
		return s.profile.Name + " always ends"
	case !a.mayLift(s.profile):
		return "only a tool's entry in the operator's config may lift it"
	}
	return "the operator set a maximum"
}

// useDefault takes the profile's default. Bounds that the operator moved move it
// too, silently: nobody asked for the value that it was.
func (s *settlement) useDefault() {
	s.Timeout, s.Source = s.profile.Default, LayerStandard
	// A valid profile's own bounds hold its default, so one that doesn't was moved.
	switch lowest, highest := s.bounds.min, s.bounds.max; {
	case s.Timeout < lowest.value:
		s.Timeout, s.Source, s.SourceDetail = lowest.value, LayerGlobal, lowest.detail
	case s.Timeout > highest.value:
		s.Timeout, s.Source, s.SourceDetail = highest.value, LayerGlobal, highest.detail
	}
	s.Clamped = s.Requested != nil
}

// tighten applies the bounds that calls and clients put on their own timeouts.
func (s *settlement) tighten() {
	for _, a := range s.asks {
		highest := s.bounds.max.value
		if s.Timeout == Infinite {
			highest = Infinite // there is no maximum to be under
		}
		if !a.caller() || a.Max <= 0 || a.Max >= highest {
			continue
		}
		if a.Left {
			s.bounds.max.value, s.Timeout = a.Max, min(a.Max, s.Timeout)
			continue
		}
		limit := max(a.Max, s.bounds.min.value)
		s.bounds.max.value = limit
		if s.Timeout > limit {
			before := len(s.warnings)
			s.warnings.addf("timeout %s is longer than the %s that %s leaves: %s is used",
				Format(s.Timeout), Format(a.Max), a.who(), Format(limit))
			s.claim(before, s.Source)
			s.Timeout, s.Source, s.SourceDetail, s.Clamped = limit, a.Layer, a.Detail, true
		}
	}
}

// explainPutAside comes last, when it is known what was used instead.
func (s *settlement) explainPutAside() {
	for _, a := range s.putAside {
		before := len(s.warnings)
		if a.height() == 0 {
			s.warnings.addf("timeout %s asked by unknown layer %q is put aside: %s is used",
				Format(a.Timeout), a.Layer, Format(s.Timeout))
			continue
		}
		s.warnings.addf("timeout 0 asked by %s is not allowed, %s: the default %s is used",
			a.who(), s.whyFinite(a), Format(s.Timeout))
		s.claim(before, a.Layer)
	}
}

// softAsked is the soft budget of the highest layer that names one, or 0.
func (s *settlement) softAsked() time.Duration {
	for _, a := range s.asks {
		if a.Soft > 0 && a.height() > 0 {
			return a.Soft
		}
	}
	return 0
}
