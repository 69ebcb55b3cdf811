package budget

import "sync"

// RetryBudget limits retries to a fraction of the calls, so that they do not overload
// a host further. It is a token bucket: each call adds a fraction of a token, each
// retry takes one. It starts full and does not depend on time. It is safe for
// concurrent use. The zero RetryBudget is usable; do not copy it after its first use.
type RetryBudget struct {
	// Ratio is the part of a token that a call adds; default 0.2. It must not change
	// after the first use.
	Ratio float64
	// Tokens is the capacity; default 10. It must not change after the first use.
	Tokens float64

	mu    sync.Mutex
	spent float64 // tokens missing from a full budget
}

const (
	defaultRatio  = 0.2
	defaultTokens = 10
)

// Deposit adds Ratio for a call, not a retry, that has begun.
func (b *RetryBudget) Deposit() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-positiveOr(b.Ratio, defaultRatio), 0)
}

// Withdraw takes a token for one retry and reports whether there was one. A nil budget is
// unlimited.
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
