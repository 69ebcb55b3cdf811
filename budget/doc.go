// Package budget decides when a call's time is up.
//
// It answers four questions, each with plain values and no input or output:
//
//   - How long may a call take, and who said so? [Resolve] merges a standard
//     [Profile] with what a call, a client and the operator ask for.
//   - What is due next in a running call? A [Clock] holds the timeout, the soft
//     budget and the [Stream] policy, and stands still during human waits.
//   - Did the model ask for more or less time? [Hint] finds its wish in the
//     arguments or in their metadata.
//   - Should a host try again, and when? [Retry] and [RetryBudget] say.
//
// The package has no goroutines and reads no clock and no random source: times
// and randomness are parameters. Pass [time.Time] values that carry a monotonic
// reading, as those of [time.Now] do, so that a changed wall clock moves nothing.
package budget
