package telemetry

import (
	"sync"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// other stands for every word that is not known.
const other = "other"

// words are those that a label may have.
type words map[string]bool

func wordsOf[S ~string](list ...S) words {
	w := words{}
	for _, one := range list {
		w[string(one)] = true
	}
	return w
}

// of is the word itself, if it is known.
func (w words) of(word string) string {
	if w[word] {
		return word
	}
	return other
}

var (
	statuses = wordsOf(
		supervisor.StatusOK, supervisor.StatusToolError, supervisor.StatusTimeout, supervisor.StatusCancelled,
		supervisor.StatusDenied, supervisor.StatusOOM, supervisor.StatusPidsLimit, supervisor.StatusOutputLimit,
		supervisor.StatusCPULimit, supervisor.StatusCrashed, supervisor.StatusNoResult, supervisor.StatusStartFailed,
		supervisor.StatusProtocolError, supervisor.StatusPolicyViolation, supervisor.StatusCollateral,
		supervisor.StatusUnkillable, supervisor.StatusOverloaded, supervisor.StatusInvalidArgs,
	)
	timeoutReasons = wordsOf(budget.ReasonDeadline, budget.ReasonTotal, budget.ReasonIdle)
	denyReasons    = wordsOf("timeout", "user", turn.OutcomeDismissed, turn.OutcomeFailed, "headless", "policy", "turn_budget", "repeat")
	abortReasons   = wordsOf(supervisor.AbortUser, supervisor.AbortTimeout, supervisor.AbortError)
	killCauses     = wordsOf("deadline", "total", "idle", "abort", "oom", "cpu", "outputTotal", "protocol", "collateral")
	killStages     = wordsOf("none", "term", "kill")
	signals        = wordsOf("SIGTERM", "SIGKILL")
	tiers          = wordsOf(sandbox.TierNative, sandbox.TierNone)
	hierarchies    = wordsOf("v2", "hybrid", "v1")
	profiles       = profileNames()
	questions      = wordsOf(
		turn.KindApproval, turn.KindConfirm, turn.KindPassword, turn.KindDeviceCode, turn.KindQuestionnaire, turn.KindEscalation,
	)
	outcomes = wordsOf(turn.OutcomeAnswered, turn.OutcomeDenied, turn.OutcomeDismissed, turn.OutcomeFailed, turn.OutcomeTimedOut, turn.OutcomeHeadless, turn.OutcomeCancelled)
)

func profileNames() words {
	w := words{}
	for _, p := range budget.Profiles() {
		w[p.Name] = true
	}
	return w
}

// maxTools bounds the tools that have a name of their own in metrics, over the
// whole life of the host: those of a thousand reloads, too.
const maxTools = 512

// tools are the names that labels may have. It may be used from any goroutine.
type tools struct {
	known func(name string) bool
	begin func(name string) // called once for each name

	mu   sync.RWMutex
	seen map[string]bool
}

// of is a tool's name, if the catalogue has it or had it once.
func (t *tools) of(name string) string {
	if !t.has(name) && (name != turn.StatusTool && !t.known(name) || !t.add(name, maxTools)) {
		return other
	}
	return name
}

func (t *tools) has(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.seen[name]
}

// add says whether there is such a name now: at most so many are.
func (t *tools) add(name string, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[name] {
		return true
	}
	if len(t.seen) >= limit {
		return false
	}
	t.seen[name] = true
	t.begin(name)
	return true
}
