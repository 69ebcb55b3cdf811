package budget

import (
	"fmt"
	"slices"
	"time"
)

// Names of the standard profiles.
const (
	Heartbeat           = "heartbeat"
	Registration        = "registration"
	TaskSubmit          = "task_submit"
	MessageRoute        = "message_route"
	NegotiationOpen     = "negotiation_open"
	NegotiationVote     = "negotiation_vote"
	NegotiationDecision = "negotiation_decision"
	Handoff             = "handoff"
	WorkflowSubmit      = "workflow_submit"
	WorkflowStatus      = "workflow_status"
	ToolCall            = "tool_call"
	HITLEscalate        = "hitl_escalate"
)

// Profile says how long one kind of operation may take. The zero Profile means
// the standard profile [ToolCall].
type Profile struct {
	// Name appears in results, metrics and warnings.
	Name string
	// Default is the timeout if nobody asks for one.
	Default time.Duration
	// Min and Max bound the timeouts asked for. Both are finite and positive.
	Min, Max time.Duration
	// InfiniteAllowed lets the operator's entry for a tool, and nothing else,
	// turn the timeout off.
	InfiniteAllowed bool
}

var standard = []Profile{
	profile(Heartbeat, 5_000, 1_000, 30_000, false),
	profile(Registration, 30_000, 5_000, 120_000, false),
	profile(TaskSubmit, 30_000, 5_000, 300_000, false),
	profile(MessageRoute, 10_000, 1_000, 60_000, false),
	profile(NegotiationOpen, 60_000, 10_000, 600_000, false),
	profile(NegotiationVote, 300_000, 30_000, 1_800_000, true),
	profile(NegotiationDecision, 60_000, 5_000, 300_000, false),
	profile(Handoff, 60_000, 10_000, 300_000, false),
	profile(WorkflowSubmit, 30_000, 5_000, 120_000, false),
	profile(WorkflowStatus, 10_000, 1_000, 60_000, false),
	profile(ToolCall, 30_000, 1_000, 3_600_000, true),
	profile(HITLEscalate, 300_000, 60_000, 3_600_000, true),
}

// profile takes milliseconds, as the table of standard profiles is written.
func profile(name string, defaultMs, minMs, maxMs int, infinite bool) Profile {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return Profile{Name: name, Default: ms(defaultMs), Min: ms(minMs), Max: ms(maxMs), InfiniteAllowed: infinite}
}

// Names of the profiles of interactions: how long a human is waited for. An
// escalation's is [HITLEscalate].
const (
	Approval      = "approval"
	Confirm       = "confirm"
	Password      = "password"
	DeviceCode    = "device_code"
	Questionnaire = "questionnaire"
)

// MaxHumanWait is the greatest timeout of an interaction.
const MaxHumanWait = time.Hour

// interactions are those of humans. The default of a device code holds for none:
// who asks for one knows how long it is valid.
var interactions = []Profile{
	profile(Approval, 120_000, 1, 3_600_000, false),
	profile(Confirm, 60_000, 1, 3_600_000, false),
	profile(Password, 120_000, 1, 3_600_000, false),
	profile(DeviceCode, 300_000, 1, 3_600_000, false),
	profile(Questionnaire, 120_000, 1, 3_600_000, false),
	profile("sampling", 120_000, 1, 3_600_000, false),
	profile("roots", 10_000, 1, 3_600_000, false),
}

// Interactions returns a copy of the profiles of interactions, including [HITLEscalate].
// None allows an infinite timeout.
func Interactions() []Profile {
	escalation, _ := Standard(HITLEscalate)
	escalation.InfiniteAllowed = false
	return append(slices.Clone(interactions), escalation)
}

// Interaction returns the profile of an interaction by its name.
func Interaction(name string) (Profile, bool) { return find(Interactions(), name) }

// Profiles returns a copy of the standard profiles, always in the same order.
func Profiles() []Profile { return slices.Clone(standard) }

// Standard returns a standard profile by its name.
func Standard(name string) (Profile, bool) { return find(standard, name) }

func find(profiles []Profile, name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}

// Validate returns an error unless the profile has a name and
// 0 < Min <= Default <= Max < Infinite.
func (p Profile) Validate() error {
	switch {
	case p.Name == "":
		return fmt.Errorf("cannot use timeout profile: it has no name")
	case p.Min <= 0:
		return fmt.Errorf("cannot use timeout profile %q: minimum %s is not positive", p.Name, Format(p.Min))
	case p.Max == Infinite:
		return fmt.Errorf("cannot use timeout profile %q: its maximum must be finite", p.Name)
	case p.Default < p.Min || p.Default > p.Max:
		return fmt.Errorf("cannot use timeout profile %q: default %s is not between %s and %s",
			p.Name, Format(p.Default), Format(p.Min), Format(p.Max))
	}
	return nil
}
