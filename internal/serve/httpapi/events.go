package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
)

// events lets a client watch a turn, or the record of one that is over.
func (s *Server) events(q *request) error {
	seq, err := q.lastSeen()
	if err != nil {
		return err
	}
	id := q.r.PathValue("turnId")
	t, err := s.activeTurn(q)
	active := err == nil
	if !active {
		if id, err = s.onRecord(q); err != nil {
			return err
		}
	}
	free, err := s.streams.take(q.who)
	if err != nil {
		return err
	}
	defer free()
	st := s.newStream(q)
	defer st.close()
	ctx, stop := s.watching(q)
	defer stop()
	switch {
	case st.send() != nil: // the client has gone
	case active:
		_ = st.follow(ctx, t, seq)
	default:
		s.sendRecord(ctx, st, id, seq)
	}
	return nil
}

// watching is a context for as long as a client, and the daemon, go on with a
// stream of events.
func (s *Server) watching(q *request) (ctx context.Context, stop func()) {
	ctx, cancel := s.whileKnown(q.r.Context(), q.who)
	unhook := context.AfterFunc(s.closing, cancel)
	return ctx, func() { unhook(); cancel() }
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
		return 0, refuse(codeInvalid, name+" "+printable(text)+" is not a seq of an event", "give the id of the last event that you have seen")
	}
	return seq, nil
}

// onRecord finds a turn that is over.
func (s *Server) onRecord(q *request) (id string, err error) {
	if s.config.History != nil {
		id, err = s.recorded(q, s.config.History)
	}
	if id == "" || err != nil {
		return "", notActive(q.r.PathValue("turnId"))
	}
	return id, nil
}

// sendRecord sends the recorded events of a turn that is over. An answer with only some of
// them must not look whole.
func (s *Server) sendRecord(ctx context.Context, st *stream, turnID string, seq int64) {
	whole := true
	err := s.config.History.Events(turnID, seq, func(e journal.Event) bool {
		if e.Seq-1 > seq {
			st.putGap(api.Gap{TurnID: turnID, From: seq + 1, To: e.Seq - 1})
		}
		seq = e.Seq
		st.put(e.Seq, string(e.Kind), e.JSON)
		whole = st.buf.Len() < pieceBytes || st.send() == nil && ctx.Err() == nil
		return whole
	})
	switch {
	case err != nil:
		s.config.Logger.Warn("cannot read a turn's events from the journal", "turn", turnID, "error", err)
		_, _ = st.fail(notKept(err))
	case !whole:
		panic(http.ErrAbortHandler)
	default:
		_ = st.send()
	}
}
