package mcpserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/turn"
)

// margins are how long before the client's own timeout a call ends, and after
// how much of that its grace period is cut short: last is what is left then.
func margins(timeout time.Duration) (margin, last time.Duration) {
	margin = min(5*time.Second, timeout/2)
	return margin, margin * 2 / 5
}

// limits are when a request must be answered, whatever its call waits for.
type limits struct {
	end, kill <-chan time.Time // nil is never
	timers    []*time.Timer
}

// limitsOf are those of a request whose client waits for timeout. The call's own
// deadline is a little earlier, and tells more.
func limitsOf(timeout time.Duration, received time.Time) limits {
	if timeout == budget.Infinite {
		return limits{}
	}
	margin, last := margins(timeout)
	end := time.NewTimer(time.Until(received.Add(timeout - margin + margin/5)))
	kill := time.NewTimer(time.Until(received.Add(timeout - last)))
	return limits{end.C, kill.C, []*time.Timer{end, kill}}
}

func (l limits) stop() {
	for _, t := range l.timers {
		t.Stop()
	}
}

// until is the end of what a call does by itself; limitsOf come after it.
func (s *Server) until(client string, received time.Time) turn.Until {
	timeout := s.timeout(client)
	if timeout == budget.Infinite {
		return turn.Until{}
	}
	margin, _ := margins(timeout)
	return turn.Until{At: received.Add(timeout - margin), Why: clientWaits(timeout, ", also while a human is asked")}
}

// clientWaits says for the model how long its client does, with more about that.
func clientWaits(timeout time.Duration, more string) string {
	return fmt.Sprintf("the client waits no longer than %s for a result%s (mcp: clientTimeout)", timeout, more)
}

// ownReserve keeps the turn's own abort away from a call whose time is over: its
// own end is told with more of why.
const ownReserve = time.Hour

// budget is that of a call's turn: the operator's, with no more time than the
// client leaves.
func (s *Server) budget(timeout time.Duration) (b budget.TurnSpec) {
	if s.config.Budget != nil {
		b = s.config.Budget()
	}
	if timeout == budget.Infinite {
		return b
	}
	margin, _ := margins(timeout)
	left := timeout - margin
	reserve := b.Reserve
	reserve = cmp.Or(reserve, budget.DefaultReserve)
	if b.Deadline > 0 && b.Deadline-reserve <= left {
		return b
	}
	b.Deadline, b.Reserve = left+ownReserve, ownReserve
	return b
}
