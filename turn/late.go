package turn

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

// late is what the record lacks of turns that are over, since the journal fails. It is put
// there once the journal works again, or never where that does not come to be before Close.
type late struct {
	mu    sync.Mutex
	turns [][]Record // the oldest first
	bytes int
	again *time.Timer // tries anew; nil while none waits
}

// What is held of them at most.
const (
	maxLateTurns = 1024
	maxLateBytes = 16 << 20
)

// keepLate keeps what the record lacks of a turn that is over, unless it has run nothing and
// is not on record at all: then its calls were refused.
func (m *Manager) keepLate(t *Turn) {
	if m.config.Journal == nil || t.recorded.err == nil || errors.Is(t.recorded.err, ErrTaken) {
		return
	}
	held, whole := t.log.after(t.recorded.seq)
	ran := func(r *Record) bool { return r.Event.Kind == api.EventStarted }
	switch {
	case !whole:
		m.outage.lose()
	case t.recorded.seq > 0 || slices.ContainsFunc(held, ran):
		m.addLate(held)
	}
}

func (m *Manager) addLate(held []*Record) {
	records := values(held)
	l, bytes := &m.late, bytesOf(records)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) >= maxLateTurns || l.bytes+bytes > maxLateBytes {
		m.outage.lose()
		return
	}
	l.turns, l.bytes = append(l.turns, records), l.bytes+bytes
	if l.again == nil {
		l.again = time.AfterFunc(journalPause, m.recordLate)
	}
}

func bytesOf(records []Record) (n int) {
	for i := range records {
		n += records[i].bytes()
	}
	return n
}

// recordLate puts on record what it can of what is late. The rest is tried again later, from
// the one behind that which failed.
func (m *Manager) recordLate() {
	l := &m.late
	l.mu.Lock()
	defer l.mu.Unlock()
	for failed := false; len(l.turns) > 0 && !failed; {
		first := l.turns[0]
		l.turns, l.bytes = l.turns[1:], l.bytes-bytesOf(first)
		n, err := m.append(first)
		switch rest := first[n:]; {
		case err == nil:
			m.worksAgain()
		case errors.Is(err, ErrTaken): // by another turn meanwhile
			m.outage.lose()
		default:
			l.turns, l.bytes, failed = append(l.turns, rest), l.bytes+bytesOf(rest), true
		}
	}
	if l.again = nil; len(l.turns) > 0 {
		l.again = time.AfterFunc(journalPause, m.recordLate)
	}
}

// closeLate tries for a last time.
func (m *Manager) closeLate() {
	m.recordLate()
	l := &m.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		return
	}
	l.again.Stop()
	m.config.Logger.Error("turns that have ended are not on record to their ends: the journal could not be written", "turns", len(l.turns))
	l.turns = nil
}
