package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// maxWait is the ceiling of every interaction.
const maxWait = time.Hour

// waits are the default timeouts; the asker names a device code's.
var waits = map[api.InteractionKind]time.Duration{
	api.KindApproval: 120 * time.Second, api.KindConfirm: 60 * time.Second, api.KindPassword: 120 * time.Second,
	api.KindQuestionnaire: 120 * time.Second, api.KindEscalation: escalation().Default,
}

func escalation() budget.Profile {
	p, _ := budget.ForOperation(budget.OpEscalate)
	return p
}

// WaitFor settles an interaction's timeout: asked for, or the kind's own, at
// most an hour; an escalation's is that of the profile hitl_escalate. There is
// none without an end.
func WaitFor(kind api.InteractionKind, asked time.Duration) (wait time.Duration, warning string, err error) {
	least := time.Duration(0)
	if kind == api.KindEscalation {
		least = escalation().Min
	}
	switch {
	case asked < 0 || asked == budget.Infinite:
		return 0, "", fmt.Errorf("interaction %s: a timeout without an end is not possible: give at most %s", kind, maxWait)
	case asked == 0 && waits[kind] == 0:
		return 0, "", fmt.Errorf("interaction %s: give a timeout of at most %s", kind, maxWait)
	case asked == 0:
		return waits[kind], "", nil
	case asked > maxWait:
		return maxWait, fmt.Sprintf("interaction %s: a timeout of %s is over the ceiling: %s it is", kind, asked, maxWait), nil
	case asked < least:
		return least, fmt.Sprintf("interaction %s: a timeout of %s is too short: %s it is", kind, asked, least), nil
	}
	return asked, "", nil
}

// Interactor asks a human. Ask waits for the answer, or for ctx's end: then
// somebody else has answered, or nobody in time. An error means that it cannot
// ask; the interaction goes on to wait for others.
type Interactor interface {
	Ask(ctx context.Context, i api.Interaction) (api.Answer, error)
}

// OneAtATime marks an Interactor that shows one question at a time. A turn then
// raises its questions one after another, in the order in which they came up, and
// the time of each begins when it is raised.
type OneAtATime interface {
	Interactor
	OneAtATime()
}
