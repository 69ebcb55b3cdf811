package turn

import "github.com/toolhost/toolhost/api"

// Outcomes of an interaction.
//
// Deprecated: use those of package api.
const (
	OutcomeAnswered  = api.OutcomeAnswered
	OutcomeDenied    = api.OutcomeDenied
	OutcomeDismissed = api.OutcomeDismissed
	OutcomeFailed    = api.OutcomeFailed
	OutcomeTimedOut  = api.OutcomeTimedOut
	OutcomeHeadless  = api.OutcomeHeadless
	OutcomeCancelled = api.OutcomeCancelled
)
