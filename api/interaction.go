package api

// InteractionKind is what a human is asked for.
type InteractionKind string

// Kinds of interactions.
const (
	KindApproval      InteractionKind = "approval"
	KindConfirm       InteractionKind = "confirm" // of something destructive
	KindPassword      InteractionKind = "password"
	KindDeviceCode    InteractionKind = "device_code"
	KindQuestionnaire InteractionKind = "questionnaire" // a tool's own, in mid-call
	KindEscalation    InteractionKind = "escalation"    // the agent hands something over to a human
)

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
