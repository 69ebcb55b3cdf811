package turn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// profileOf returns the timeout profile of a kind of interaction.
func profileOf(kind api.InteractionKind) (budget.Profile, bool) {
	if kind == api.KindEscalation {
		return budget.Interaction(budget.HITLEscalate)
	}
	p, known := budget.Interaction(string(kind))
	return p, known && p.Name != budget.HITLEscalate // the configuration's word for an escalation, not a kind
}

// WaitFor returns the timeout of an interaction: asked, if it is not 0, or that of asks
// and the kind's profile, always finite and at most an hour. A device code has no default:
// asked or asks must set it. warning says what was clamped.
func WaitFor(kind api.InteractionKind, asked time.Duration, asks ...budget.Ask) (wait time.Duration, warning string, err error) {
	p, known := profileOf(kind)
	switch {
	case !known:
		return 0, "", fmt.Errorf("unknown kind of interaction %q", kind)
	case asked < 0 || asked == budget.Infinite:
		return 0, "", fmt.Errorf("interaction %s: the timeout must be finite: give at most %s", kind, budget.MaxHumanWait)
	case asked > 0:
		asks = append(slices.Clone(asks), budget.Ask{Layer: budget.LayerCall, Timeout: asked})
	}
	r := budget.Resolve(p, asks...)
	if kind == api.KindDeviceCode && r.Requested == nil {
		return 0, "", fmt.Errorf("interaction %s: give a timeout of at most %s", kind, budget.MaxHumanWait)
	}
	if r.Timeout > budget.MaxHumanWait {
		r.Warnings = append(r.Warnings, fmt.Sprintf("timeout %s is above the ceiling of every interaction: %s is used", budget.Format(r.Timeout), budget.Format(budget.MaxHumanWait)))
	}
	for _, one := range r.Warnings {
		warning += "; " + one
	}
	if warning != "" {
		warning = fmt.Sprintf("interaction %s: %s", kind, warning[2:])
	}
	return min(r.Timeout, budget.MaxHumanWait), warning, nil
}

// wait calls WaitFor with the timeouts of operator, tool and the turn's host. asked is
// that of the requester.
func (t *Turn) wait(kind api.InteractionKind, tool Tool, asked time.Duration) (time.Duration, string, error) {
	p, _ := profileOf(kind)
	var asks []budget.Ask
	if t.m.config.Profiles != nil {
		asks = t.m.config.Profiles()[p.Name]
	}
	asks = slices.Concat(asks, tool.Request.Profiles[p.Name])
	if own := t.waits[kind]; own > 0 {
		asks = append(asks, budget.Ask{Layer: budget.LayerClient, Timeout: own, Detail: "the turn's"})
	}
	return WaitFor(kind, asked, asks...)
}

// checkWaits refuses timeouts of unknown kinds and those that do not end.
func checkWaits(waits map[api.InteractionKind]time.Duration) error {
	for kind, wait := range waits {
		if wait == 0 {
			return fmt.Errorf("interaction %s: timeout 0 is not allowed: give one of at most %s, or leave it out", kind, budget.MaxHumanWait)
		}
		if _, _, err := WaitFor(kind, wait); err != nil {
			return err
		}
	}
	return nil
}

// Interactor asks a human. Ask waits for the answer, or until ctx ends because
// somebody else answered or the time is over. An error means that it cannot
// ask; the interaction stays open for answers by Turn.Answer.
type Interactor interface {
	Ask(ctx context.Context, i api.Interaction) (api.Answer, error)
}

// OneAtATime marks an Interactor that shows one question at a time. A turn then
// raises its questions one after another, in order, and the time of each begins when
// it is raised. A question that stays open after its call gives way to others: its Ask
// is cancelled, and called again after them with a zero ExpiresAt.
type OneAtATime interface {
	Interactor
	OneAtATime()
}
