package httpapi

import (
	"context"
	"math"
	"strconv"

	"github.com/toolhost/toolhost/internal/journal"
)

// events lets a client watch a turn, or what is on record of one that is over.
func (s *Server) events(q *request) error {
	seq, err := q.lastSeen()
	if err != nil {
		return err
	}
	id := q.r.PathValue("turnId")
	var f *feed
	if t, ok := s.config.Turns.Turn(id); ok {
		f = s.attach(t, false).feed
	} else if !s.onRecord(id) {
		return notActive(id)
	}
	free, err := s.takeStream()
	if err != nil {
		return err
	}
	defer free()
	st, err := s.openStream(q)
	if err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	defer st.close()
	w := &watcher{s: s, st: st, turnID: id, seq: seq, ctx: q.r.Context()}
	if f == nil {
		w.replay(math.MaxInt64)
		return nil
	}
	w.watch(f)
	return nil
}

const lastEventID = "Last-Event-ID"

// lastSeen is where the client wants to go on.
func (q *request) lastSeen() (int64, error) {
	name, text := lastEventID, q.r.Header.Get(lastEventID)
	if text == "" {
		name, text = after.name, q.r.URL.Query().Get(after.name)
	}
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, refuse(codeInvalid, name+" "+printable(text)+" is no seq of an event", "give the id of the last event that you have seen")
	}
	return seq, nil
}

func (s *Server) onRecord(turnID string) bool {
	if s.config.History == nil {
		return false
	}
	found, err := s.config.History.Turns(journal.Filter{TurnID: turnID, Limit: 1})
	return err == nil && len(found) == 1
}

// watcher passes a turn's events on to one client, at the client's pace.
type watcher struct {
	s      *Server
	st     *stream
	turnID string
	seq    int64 // the last that was sent
	ctx    context.Context
}

// watch goes on to the end of the turn. It returns false if the client, or the
// daemon, goes away first.
func (w *watcher) watch(f *feed) (ended bool) {
	for {
		p := f.after(w.seq)
		switch {
		case w.seq+1 < p.first && p.last > 0:
			if !w.catchUp(p.first - 1) {
				return false
			}
		case len(p.events) > 0:
			for _, e := range p.events {
				w.put(e)
			}
			if w.st.send() != nil {
				return false
			}
		case p.over:
			return true
		default:
			if !w.wait(p.changed) {
				return false
			}
		}
	}
}

func (w *watcher) put(e event) {
	w.st.put(e.seq, e.kind, e.json)
	w.seq = e.seq
}

// wait waits for something new.
func (w *watcher) wait(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-w.st.beat.C:
		return w.st.comment("heartbeat") == nil
	case <-w.ctx.Done():
		return false
	case <-w.s.closing:
	}
	select {
	case <-changed: // the end of a turn is told before that of the daemon
		return true
	default:
		return false
	}
}

// catchUp gives what the feed no longer holds, up to an event: from the journal
// or, where that does not have it, as a gap.
func (w *watcher) catchUp(to int64) bool {
	if w.s.config.History != nil && !w.replay(to) {
		return false
	}
	if w.seq < to {
		w.st.gap(w.turnID, w.seq+1, to)
		w.seq = to
	}
	return w.st.send() == nil
}

// replay gives events of the journal, up to one. It returns false if the client
// has gone.
func (w *watcher) replay(to int64) bool {
	alive := true
	err := w.s.config.History.Events(w.turnID, w.seq, func(e journal.Event) bool {
		if e.Seq > to {
			return false
		}
		w.put(event{e.Seq, e.Kind, e.JSON})
		if w.st.buf.Len() > pieceBytes {
			alive = w.st.send() == nil && w.ctx.Err() == nil
		}
		return alive
	})
	if err != nil {
		w.s.config.Logger.Warn("cannot read a turn's events from the journal", "turn", w.turnID, "error", err)
	}
	return alive && w.st.send() == nil
}
