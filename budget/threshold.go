package budget

import "time"

const (
	// DefaultSoft is the default soft budget.
	DefaultSoft = 10 * time.Second
	// DefaultGrace is the default time between SIGTERM and SIGKILL.
	DefaultGrace = 2 * time.Second
	// MaxGrace is the longest grace period.
	MaxGrace = 30 * time.Second
	// NoGrace asks [Grace] for no grace period: SIGKILL follows SIGTERM at once. It is
	// not 0, which means the default.
	NoGrace time.Duration = -1
	// AnswerMargin bounds the time from the end of timeout and grace until the caller
	// has its result, whatever the tool does.
	AnswerMargin = time.Second
)

// Soft returns the soft budget in force: the smaller of asked and timeout. If asked is
// 0 or less it means [DefaultSoft]. Both run on the same clock, so the soft budget
// passes even with an infinite timeout; [Infinite] for both turns it off.
func Soft(asked, timeout time.Duration) time.Duration {
	if asked <= 0 {
		asked = DefaultSoft
	}
	return min(asked, timeout)
}

// Grace returns the grace period in force, and a warning for each change. 0 means
// [DefaultGrace], and [NoGrace] means 0, to kill at once. Other negative values become
// 0, and values above [MaxGrace] become that, with a warning.
func Grace(asked time.Duration) (time.Duration, []string) {
	var w warnings
	switch {
	case asked == 0:
		return DefaultGrace, nil
	case asked == NoGrace:
		return 0, nil
	case asked < 0:
		w.addf("grace %s is negative: 0s is used, tools are killed at once", Format(asked))
		return 0, w
	case asked > MaxGrace:
		w.addf("grace %s is above the maximum %s: %s is used", Format(asked), Format(MaxGrace), Format(MaxGrace))
		return MaxGrace, w
	}
	return asked, nil
}

// AnswerWithin returns the longest time that a caller waits for a call, from admission
// and less human waits: timeout + grace + [AnswerMargin], or [Infinite].
func AnswerWithin(timeout, grace time.Duration) time.Duration {
	return add(add(max(timeout, 0), max(grace, 0)), AnswerMargin)
}
