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

// Event is something that happened in a turn.
//
// Deprecated: use [api.Event].
type Event = api.Event

// Gap stands for events that are not in a stream of them.
//
// Deprecated: use [api.Gap].
type Gap = api.Gap

// Kinds of events, of calls that were decided about too.
//
// Deprecated: use those of package api.
const (
	EventTurnStart           = api.EventTurnStart
	EventTurnEnd             = api.EventTurnEnd
	EventTurnAbort           = api.EventTurnAbort
	EventInteractionPending  = api.EventInteractionPending
	EventInteractionRequest  = api.EventInteractionRequest
	EventInteractionResponse = api.EventInteractionResponse
	EventReaped              = api.EventReaped
	EventGap                 = api.EventGap
	AuditRequested           = api.AuditRequested
	AuditAnswered            = api.AuditAnswered
	AuditTimedOut            = api.AuditTimedOut
	AuditDenied              = api.AuditDenied
)

// Kind is what a human is asked for.
//
// Deprecated: use [api.InteractionKind].
type Kind = api.InteractionKind

// Kinds of interactions.
//
// Deprecated: use those of package api.
const (
	KindApproval      = api.KindApproval
	KindConfirm       = api.KindConfirm
	KindPassword      = api.KindPassword
	KindDeviceCode    = api.KindDeviceCode
	KindQuestionnaire = api.KindQuestionnaire
	KindEscalation    = api.KindEscalation
)

// Interaction is a question to a human that waits for an answer.
//
// Deprecated: use [api.Interaction].
type Interaction = api.Interaction

// Answer is a human's.
//
// Deprecated: use [api.Answer].
type Answer = api.Answer
