package api

// Outcomes of an interaction.
const (
	OutcomeAnswered  = "answered"
	OutcomeDenied    = "denied"    // a human said no
	OutcomeDismissed = "dismissed" // a human was asked, and said neither yes nor no
	OutcomeFailed    = "failed"    // nobody could be asked
	OutcomeTimedOut  = "timeout"   // nobody said anything in time
	OutcomeHeadless  = "headless"  // nobody was asked
	OutcomeCancelled = "cancelled" // the call or turn ended first
)
