package budget

import "sync"

// RetryBudget keeps retries to a fraction of the calls, so that an overloaded host
// isn't buried in them. It holds tokens: each call begun puts in a fraction of one,
// each retry takes one. It starts full, counts no time, and is safe for concurrent
// use. The zero RetryBudget is useful; it must not be copied after its first use.
type RetryBudget struct {
	// Ratio is the retries earned by one call; default 0.2. It may not change after
	// the first use.
	Ratio float64
	// Tokens is the most that is kept, and what there is at first; default 10. It may
	// not change after the first use.
	Tokens float64

	mu    sync.Mutex
	spent float64 // tokens missing from a full budget
}

const (
	defaultRatio  = 0.2
	defaultTokens = 10
)

// Deposit records that a call, not a retry, has begun.
func (b *RetryBudget) Deposit() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-positiveOr(b.Ratio, defaultRatio), 0)
}

// Withdraw takes a token for one retry, or is false if the budget is used up. A nil budget
// has no end.
func (b *RetryBudget) Withdraw() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+1 > positiveOr(b.Tokens, defaultTokens) {
		return false
	}
	b.spent++
	return true
}

func positiveOr(value, standard float64) float64 {
	if value > 0 {
		return value
	}
	return standard
}
