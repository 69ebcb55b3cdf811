package mcp

import (
	"encoding/json"

	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// listStream is the stream in which a server announces changes of its lists. The
// session's mu guards it.
type listStream struct {
	*exchange
	id     string // of its request, as JSON
	open   bool   // the server has acknowledged some of it
	ending bool   // this side wants no more of it
}

// watch has a server of the newest protocol announce changes of its lists, which
// others do unasked.
func (s *session) watch() {
	select {
	case <-s.ready:
	default:
		return // it does so once it is ready
	}
	if !s.stateless() {
		return
	}
	s.mu.Lock()
	before, l := s.lists, &listStream{exchange: newStream()}
	if before != nil || s.wire.number(l.exchange) != nil {
		s.mu.Unlock()
		return
	}
	l.id, s.lists = idOf(l.exchange), l
	s.mu.Unlock()
	go s.followLists(l)
	_ = s.stream(l.exchange, map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
}

// listsAcknowledged is acknowledged for that stream.
func (s *session) listsAcknowledged(id string, accepted json.RawMessage) {
	var only *struct{ ToolsListChanged, PromptsListChanged, ResourcesListChanged bool }
	said := json.Unmarshal(accepted, &only) == nil && only != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists; l != nil && l.id == id {
		l.open = !said || only.ToolsListChanged || only.PromptsListChanged || only.ResourcesListChanged
	}
}

// followLists has the stream asked for anew, by the next request, where the server has
// ended an open one.
func (s *session) followLists(l *listStream) {
	if !s.endedAlone(l.exchange) {
		return
	}
	s.mu.Lock()
	again := l.open && !l.ending
	if again {
		s.lists = nil
	}
	s.mu.Unlock()
	if again {
		s.tell(mcpcall.ServerEnded, json.RawMessage("{}"))
	}
}

// renewLists has an open stream begin anew: to servers of the SDK for Go the end of any
// stream of a session is that of its lists, too. It waits for its end as who subscribes
// does.
func (s *session) renewLists() {
	s.mu.Lock()
	l := s.lists
	renews := l != nil && l.open && !l.ending
	if renews {
		l.ending = true
	}
	s.mu.Unlock()
	if !renews {
		return
	}
	s.wire.cancel(l.exchange, "it begins anew")
	within(settleTime, l.done)
	s.wire.forget(l.exchange)
	s.mu.Lock()
	s.lists = nil
	s.mu.Unlock()
	s.watch()
}

// follow tells the host where a server has ended an open stream by itself: it is to ask
// for what it still wants, as after the end of the server.
func (s *session) follow(uri string, one *subscription) {
	if !s.endedAlone(one.exchange) {
		return
	}
	s.mu.Lock()
	wanted := !one.ending
	s.mu.Unlock()
	if wanted {
		s.forget(uri, one)
		s.renewLists()
		s.tell(mcpcall.ServerEnded, json.RawMessage("{}"))
	}
}

// endedAlone waits for the end of a stream, and says whether the server goes on.
func (s *session) endedAlone(e *exchange) bool {
	select {
	case <-e.done:
		return !within(settleTime, s.wire.over)
	case <-s.wire.over:
		return false
	}
}

// idOf is a request's id, as JSON.
func idOf(e *exchange) string {
	raw, _ := json.Marshal(e.id.Raw()) // a number
	return string(raw)
}
