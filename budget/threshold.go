package budget

import "time"

const (
	// DefaultSoft is the soft budget where none is asked for.
	DefaultSoft = 10 * time.Second
	// DefaultGrace is the time between SIGTERM and SIGKILL where none is asked for.
	DefaultGrace = 2 * time.Second
	// MaxGrace is the longest grace.
	MaxGrace = 30 * time.Second
	// NoGrace asks [Grace] for no time at all: SIGKILL follows at once. It is not 0,
	// since a zero option means that nobody has set it.
	NoGrace time.Duration = -1
	// AnswerMargin is the time after timeout and grace in which a caller has its
	// answer, whatever the tool does.
	AnswerMargin = time.Second
)

// Soft gives the soft budget in force: the smaller of what is asked for and the
// timeout. An ask of 0 or less means [DefaultSoft]. Both run on the same clock,
// so with an infinite timeout the soft budget still passes; [Infinite] for both
// turns it off.
func Soft(asked, timeout time.Duration) time.Duration {
	if asked <= 0 {
		asked = DefaultSoft
	}
	return min(asked, timeout)
}

// Grace gives the grace in force and a warning for each change. 0 means that none
// was asked for and gives [DefaultGrace]; [NoGrace] gives 0, to kill at once;
// other negative values give 0 and longer ones than [MaxGrace] give that.
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

// AnswerWithin is the longest that a caller waits for a call, from admission and
// less human waits: timeout + grace + [AnswerMargin], or [Infinite].
func AnswerWithin(timeout, grace time.Duration) time.Duration {
	return add(add(max(timeout, 0), max(grace, 0)), AnswerMargin)
}
