package client

import "github.com/toolhost/toolhost/api"

// The types of the wire.
//
// Deprecated: use those of package api.
type (
	// Annotations is api.Annotations.
	//
	// Deprecated: use [api.Annotations].
	Annotations = api.Annotations
	// Answer is api.Answer.
	//
	// Deprecated: use [api.Answer].
	Answer = api.Answer
	// Batch is api.Batch.
	//
	// Deprecated: use [api.Batch].
	Batch = api.Batch
	// Call is api.Call.
	//
	// Deprecated: use [api.Call].
	Call = api.Call
	// CallSummaries is api.CallSummaries.
	//
	// Deprecated: use [api.CallSummaries].
	CallSummaries = api.CallSummaries
	// CallSummary is api.CallSummary.
	//
	// Deprecated: use [api.CallSummary].
	CallSummary = api.CallSummary
	// CurrentTool is api.CurrentTool.
	//
	// Deprecated: use [api.CurrentTool].
	CurrentTool = api.CurrentTool
	// Usage is api.CurrentUsage.
	//
	// Deprecated: use [api.CurrentUsage].
	Usage = api.CurrentUsage
	// Done is api.Done.
	//
	// Deprecated: use [api.Done].
	Done = api.Done
	// Error is api.Error.
	//
	// Deprecated: use [api.Error].
	Error = api.Error
	// Failure is api.Failure.
	//
	// Deprecated: use [api.Failure].
	Failure = api.Failure
	// Gap is api.Gap.
	//
	// Deprecated: use [api.Gap].
	Gap = api.Gap
	// Health is api.Health.
	//
	// Deprecated: use [api.Health].
	Health = api.Health
	// Interaction is api.Interaction.
	//
	// Deprecated: use [api.Interaction].
	Interaction = api.Interaction
	// Interactions is api.Interactions.
	//
	// Deprecated: use [api.Interactions].
	Interactions = api.Interactions
	// LoginLink is api.LoginLink.
	//
	// Deprecated: use [api.LoginLink].
	LoginLink = api.LoginLink
	// Policy is api.Policy.
	//
	// Deprecated: use [api.Policy].
	Policy = api.Policy
	// Results is api.Results.
	//
	// Deprecated: use [api.Results].
	Results = api.Results
	// Tool is api.Tool.
	//
	// Deprecated: use [api.Tool].
	Tool = api.Tool
	// Tools is api.Tools.
	//
	// Deprecated: use [api.Tools].
	Tools = api.Tools
	// Turn is api.Turn.
	//
	// Deprecated: use [api.Turn].
	Turn = api.Turn
	// TurnSpec is api.TurnSpec.
	//
	// Deprecated: use [api.TurnSpec].
	TurnSpec = api.TurnSpec
	// TurnSummaries is api.TurnSummaries.
	//
	// Deprecated: use [api.TurnSummaries].
	TurnSummaries = api.TurnSummaries
	// TurnSummary is api.TurnSummary.
	//
	// Deprecated: use [api.TurnSummary].
	TurnSummary = api.TurnSummary
	// Turns is api.Turns.
	//
	// Deprecated: use [api.Turns].
	Turns = api.Turns
)

// KindGap is the kind of the event that brings a Gap.
//
// Deprecated: use [api.EventGap].
const KindGap = api.EventGap

// Event is one event of a turn or, if Gap is set, word that some are missing.
//
// Deprecated: use [api.Record].
type Event = api.Record

// Filter narrows a list of the history.
//
// Deprecated: use [api.Filter].
type Filter = api.Filter
