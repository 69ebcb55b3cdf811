package journal

import (
	"fmt"
	"sync"
	"time"
)

// ahead lets a small append return once it is in the redo log. The database gets it behind that, in the same order.
type ahead struct {
	mu     sync.Mutex
	redo   *redo                // nil: every append waits for the database
	turns  map[string]*sequence // those under way, with all that was appended
	queued int                  // requests that are in the redo log alone
	soon   *time.Timer          // has the database get them
	// stuck: the database could not take one of these, and nothing more is appended ahead of it until it can.
	stuck bool
	// stopped: nothing more is appended at all.
	stopped bool
}

const (
	// maxAheadBytes is how large a request may be that is appended ahead.
	maxAheadBytes = 128 << 10
	// gatherFor is how long others may share the commit of such a request, unless somebody waits for that.
	gatherFor = 25 * time.Millisecond
)

// append appends a request ahead, and hands it to queue; false if it must wait for the database, which also says what is
// wrong with it.
func (a *ahead) append(r *request, queue func(*request)) bool {
	if !r.small() || r.bytes > maxAheadBytes {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.redo == nil || a.stuck || a.stopped {
		return false
	}
	record := newRecord(r)
	if !a.redo.hasRoom(len(record)) || !a.admit(r.events) {
		return false
	}
	if err := a.redo.add(record); err != nil {
		a.forget(r.events)
		return false
	}
	own, err := decodeEvents(record[recordHeadBytes:]) // for the caller's may be others soon
	if err != nil {
		panic("bug: " + err.Error())
	}
	queue(&request{events: own, bytes: r.bytes, redoEnd: a.redo.end})
	if a.queued++; a.queued == 1 {
		a.soon.Reset(gatherFor)
	}
	return true
}

// admit says whether the database will take the events: their turns must be known, or have ids that are new for sure.
func (a *ahead) admit(events []Event) bool {
	for i := range events {
		e := &events[i]
		s := a.turns[e.TurnID]
		if s == nil && e.Seq == 1 && e.Fresh {
			s = new(newSequence())
			a.turns[e.TurnID] = s
		}
		if s == nil || s.admit(e) != nil {
			a.forget(events)
			return false
		}
		a.pass(s, e)
	}
	return true
}

func (a *ahead) pass(s *sequence, e *Event) {
	if s.pass(e); s.ended {
		delete(a.turns, e.TurnID)
	}
}

func (a *ahead) forget(events []Event) {
	for i := range events {
		delete(a.turns, events[i].TurnID)
	}
}

// learn notes what has become of a request that was not appended ahead.
func (a *ahead) learn(events []Event, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.redo == nil || err != nil {
		a.forget(events)
		return
	}
	for i := range events {
		e := &events[i]
		if e.Seq == 1 {
			a.turns[e.TurnID] = new(newSequence())
		}
		if s := a.turns[e.TurnID]; s != nil {
			a.pass(s, e)
		}
	}
}

// committed notes that the database has all of the group but what is left.
func (a *ahead) committed(group, left []*request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := int64(0)
	for _, r := range group[:len(group)-len(left)] {
		if r.ahead() {
			a.queued--
			end = r.redoEnd
		}
		if r.refused {
			a.forget(r.events)
		}
	}
	a.stuck = len(left) > 0
	switch {
	case a.redo == nil || a.redo.end == redoHeadBytes:
		return nil
	case a.queued == 0:
		a.soon.Stop()
		return a.redo.clear()
	case end > 0:
		a.soon.Reset(gatherFor)
		return a.redo.drop(end)
	}
	return nil
}

// lags says whether the database lacks anything.
func (a *ahead) lags() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queued > 0
}

// settle waits until the database has all that was appended by now, or cannot take it.
func (j *Journal) settle() {
	if j.ahead.lags() {
		_ = j.join(&request{reply: make(chan error, 1)})
	}
}

// openAhead brings the database what an earlier owner has left in the redo log, and begins that anew if it is wanted.
func (j *Journal) openAhead(r *redo, wanted bool) error {
	if r == nil {
		return nil
	}
	moved, err := j.writer.replay(r)
	if err != nil {
		return fmt.Errorf("cannot bring the database what is in %s: %w", r.file.Name(), err)
	}
	if moved != "" {
		j.writer.log.Error("the journal's redo log was damaged, or does not fit the database, and is moved aside: what was appended last may be missing", "moved", moved)
	}
	if !wanted {
		return nil
	}
	if err = r.begin(); err != nil {
		j.writer.log.Warn("there is no redo log: each append waits for the database", "error", err)
		return nil
	}
	j.ahead.redo, j.ahead.turns = r, map[string]*sequence{}
	j.ahead.soon = time.AfterFunc(gatherFor, func() { wakeUp(j.queued) })
	return nil
}

// stop has nothing more appended ahead.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
}

// close gives the redo log up, which keeps what the database lacks.
func (a *ahead) close() error {
	if a.redo == nil {
		return nil
	}
	return a.redo.close()
}

// replay appends what the database lacks of the redo log. One that is damaged is moved aside, by the name moved, and so is
// one with appends that do not fit: the database they belong to may have been moved aside as well, or replaced.
func (w *writer) replay(r *redo) (moved string, err error) {
	lost, damaged := 0, r.damaged()
	_, gaps, err := r.head.scan(r.file, func(payload []byte) error {
		events, err := decodeEvents(payload)
		if err == nil {
			err = w.appendMissing(events)
		}
		if refused(err) {
			lost, err = lost+1, nil
		}
		return err
	})
	if lost > 0 {
		w.log.Error("what the last owner had appended does not fit what the database has, and is left out", "appends", lost)
	}
	if err != nil || !damaged && !gaps && lost == 0 {
		return "", err
	}
	return r.setAside(w.pruner.now())
}

// appendMissing appends the events unless the database has them: it has all or none.
func (w *writer) appendMissing(events []Event) error {
	var last int64
	if err := w.do.lastSeq.QueryRow(events[0].TurnID).Scan(&last); err != nil || last >= events[0].Seq {
		return err
	}
	return w.transact([]*request{{events: events}})
}
