package telemetry

import (
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
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
	statuses       = wordsOf(api.Statuses()...)
	timeoutReasons = wordsOf(api.ReasonDeadline, api.ReasonTotal, api.ReasonIdle)
	denyReasons    = wordsOf(
		api.ReasonTimeout, api.ReasonUser, api.ReasonDismissed, api.ReasonFailed, api.ReasonHeadless, api.ReasonPolicy, api.ReasonTurnBudget, api.ReasonRepeat,
	)
	lossReasons  = wordsOf(api.ReasonWorkerDied, api.ReasonUnreachable, api.ReasonProtocol)
	abortReasons = wordsOf(api.ReasonUser, api.ReasonDisconnect, api.ReasonTimeout, api.ReasonError)
	killCauses   = wordsOf("deadline", "total", "idle", "abort", "oom", "cpu", "outputTotal", "protocol", "collateral", "network")
	killStages   = wordsOf("none", "term", "kill")
	signals      = wordsOf("SIGTERM", "SIGKILL")
	tiers        = wordsOf(sandbox.TierNative, sandbox.TierNone)
	hierarchies  = wordsOf("v2", "hybrid", "v1", "none")
	profiles     = profileNames()
	questions    = wordsOf(
		api.KindApproval, api.KindConfirm, api.KindPassword, api.KindDeviceCode, api.KindQuestionnaire, api.KindEscalation, api.KindSampling, api.KindRoots,
	)
	outcomes = wordsOf(api.OutcomeAnswered, api.OutcomeDenied, api.OutcomeDismissed, api.OutcomeFailed, api.OutcomeTimedOut, api.OutcomeHeadless, api.OutcomeCancelled)
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
