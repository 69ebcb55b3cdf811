package httpapi

import (
	"net/http"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/turn"
)

// own is the whole id of a turn that a client names. Each has names of its own, so
// that nobody can find out by one whether another has such a turn; administrators,
// who see all turns, name them as they are.
func (q *request) own(id string) string {
	if id == "" || q.who.IsAdmin() || childrenOf(q.r.Context()) != nil {
		return id
	}
	return id + ownMark + strings.ReplaceAll(q.who.Name, " ", ":")
}

// ownMark is in no id that a client may give.
const ownMark = "@"

// ids are what a client may mean by an id: as it has named it, or as it is told it. Its own
// comes first, so that reads and calls speak of one turn.
func (q *request) ids(id string) []string {
	if own := q.own(id); own != id {
		return []string{own, id}
	}
	return []string{id}
}

// may says whether the client may do with a turn what it asks for. One that it may not
// even see is answered as if it were not there.
func (q *request) may(owner string) bool {
	if c := childrenOf(q.r.Context()); c != nil {
		return true // which has been checked by its own rule
	}
	if q.r.Method == http.MethodGet {
		return q.who.Sees(owner)
	}
	return q.who.Drives(owner)
}

// activeTurn finds the turn that a path names.
func (s *Server) activeTurn(q *request) (*turn.Turn, error) {
	return s.turnOf(q, q.r.PathValue("turnId"))
}

func (s *Server) turnOf(q *request, id string) (*turn.Turn, error) {
	for _, one := range q.ids(id) {
		if t, ok := s.config.Turns.Turn(one); ok && q.may(t.Owner()) {
			return t, nil
		}
	}
	return nil, notActive(id)
}

// recorded is the whole id of the turn on record that a path names.
func (s *Server) recorded(q *request, h History) (string, error) {
	return q.recorded(h, q.r.PathValue("turnId"))
}

func (q *request) recorded(h History, id string) (string, error) {
	for _, one := range q.ids(id) {
		owner, err := h.Owner(one)
		if err == nil && q.may(owner) {
			return one, nil
		}
	}
	return "", notKept(journal.ErrNotFound)
}

// ofOwn narrows a list to what the client may see.
func (q *request) ofOwn(f api.Filter) api.Filter {
	if !q.who.Sees("") {
		f.Owner = q.who.Name
	}
	return f
}
