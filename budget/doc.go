// Package budget computes the timeouts, deadlines and retries of calls, and the
// time budget of turns.
//
// It answers four questions, with plain values and without I/O:
//
//   - How long may a call take, and who decided that? [Resolve] merges a standard
//     [Profile] with the timeouts that a call, a client and the operator ask for.
//   - What is due next in a running call? A [Clock] holds the timeout, the soft
//     budget and the [Stream] policy, and stops during human waits.
//   - Did the model ask for a timeout? [Hint] finds it in the arguments or in
//     their metadata.
//   - Should a host retry, and when? See [Retry] and [RetryBudget].
//
// The package has no goroutines and reads no clock and no random source: times
// and randomness are parameters. Pass [time.Time] values with a monotonic clock
// reading, as those of [time.Now], so that changes of the wall clock have no effect.
package budget
