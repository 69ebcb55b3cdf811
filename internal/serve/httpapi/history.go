package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
)

// past is the journal, if there is one.
func (s *Server) past() (History, error) {
	if s.config.History == nil {
		return nil, refuse(codeNoHistory, "this daemon keeps no journal", "start it with a state folder")
	}
	return s.config.History, nil
}

func (s *Server) pastTurns(q *request) error { return pastList(s, q, "turns", History.Turns) }

func (s *Server) pastCalls(q *request) error { return pastList(s, q, "calls", History.Calls) }

func pastList[T any](s *Server, q *request, name string, list func(History, api.Filter) ([]T, error)) error {
	h, err := s.past()
	if err != nil {
		return err
	}
	filter, err := q.filter()
	if err != nil {
		return err
	}
	if whole, err := q.recorded(h, filter.TurnID); err == nil { // it may be the client's own short form
		filter.TurnID = whole
	}
	done, err := s.startList(q.r.Context())
	if err != nil {
		return err
	}
	found, err := list(h, q.ofOwn(filter))
	done()
	if err != nil {
		return err
	}
	return q.answer(map[string]any{name: append([]T{}, found...)})
}

// After a list no other one is read for listRest times as long as it has taken, and at
// most for maxListRest.
const (
	listRest    = 9
	maxListRest = time.Second
)

// startList waits for its turn to read a list; done gives that back. Lists are
// read one after another, with a rest behind each of them: calls come first.
func (s *Server) startList(ctx context.Context) (done func(), err error) {
	select {
	case s.lists <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	return func() { time.AfterFunc(min(listRest*time.Since(began), maxListRest), func() { <-s.lists }) }, nil
}

// filter reads what a list is to be narrowed by.
func (q *request) filter() (f api.Filter, err error) {
	values := q.r.URL.Query()
	f.TurnID, f.Tool, f.Status = values.Get("turn"), values.Get("tool"), values.Get("status")
	if all := journal.Statuses(); f.Status != "" && !slices.Contains(all, f.Status) {
		return f, refuse(codeInvalid, "unknown status "+printable(f.Status), "must be one of "+strings.Join(all, ", "))
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := values.Get(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, refuse(codeInvalid, name+" "+printable(text)+" is not a time", "write it as 2006-01-02T15:04:05Z")
			}
			if at.IsZero() { // which is a bound here, too
				*at = at.Add(1)
			}
		}
	}
	if text := values.Get("limit"); text != "" {
		if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 1 || f.Limit > journal.MaxLimit {
			return f, refuse(codeInvalid, "limit "+printable(text)+" is not a number from 1 to "+strconv.Itoa(journal.MaxLimit), "give one, or leave limit out; for more, repeat with until")
		}
	}
	return f, nil
}

// replay gives a turn's events as they were shown. Where it breaks off, so does
// the answer.
func (s *Server) replay(q *request) error {
	h, err := s.past()
	if err != nil {
		return err
	}
	seq, err := q.lastSeen()
	if err != nil {
		return err
	}
	id, err := s.recorded(q, h)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", ndjson)
	begun := false
	err = h.Events(id, seq, func(e journal.Event) bool {
		begun = true
		_, err := q.w.Write(append(e.JSON[:len(e.JSON):len(e.JSON)], '\n'))
		return err == nil
	})
	switch {
	case err != nil && begun:
		panic(http.ErrAbortHandler) // what came is not all
	case err != nil:
		return notKept(err)
	case !begun:
		q.w.WriteHeader(http.StatusOK)
	}
	return nil
}

func (s *Server) pastResult(q *request) error {
	h, err := s.past()
	if err != nil {
		return err
	}
	id, err := s.recorded(q, h)
	if err != nil {
		return err
	}
	raw, err := h.Result(id, q.r.PathValue("callId"))
	if err != nil {
		return notKept(err)
	}
	respondRaw(q.w, http.StatusOK, raw)
	return nil
}

func notKept(err error) error {
	if errors.Is(err, journal.ErrNotFound) {
		return refuse(codeNotFound, "that is not on record", "see /api/history/turns; old turns are removed from it")
	}
	return err
}
