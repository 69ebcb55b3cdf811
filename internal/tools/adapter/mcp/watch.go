package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

const (
	// maxNotices bounds those of a server that a host has not taken; one that says the
	// same as another takes no room, unless it is of its log.
	maxNotices = 1024
	// maxNoticesBytes bounds what they have in all, and maxNoticeBytes what a host takes
	// of one.
	maxNoticesBytes = 1 << 20
	maxNoticeBytes  = 64 << 10
)

// notices are what a server has announced and no host has taken yet.
type notices struct {
	mu    sync.Mutex
	list  []notice
	bytes int
	fresh chan struct{} // holds one
}

type notice struct{ method, params string }

func newNotices() *notices { return &notices{fresh: make(chan struct{}, 1)} }

// add says whether there is room for one more. Messages of a log may be the same and
// still be two, and leave half of the room to the others.
func (n *notices) add(method string, params json.RawMessage) bool {
	one, share := notice{method, string(params)}, 1
	if method == methodLog {
		share = 2
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case method != methodLog && slices.Contains(n.list, one):
		return true
	case len(n.list) >= maxNotices/share || n.bytes+len(params) > maxNoticesBytes/share || len(params) > maxNoticeBytes:
		return false
	}
	n.list = append(n.list, one)
	n.bytes += len(params)
	select {
	case n.fresh <- struct{}{}:
	default:
	}
	return true
}

func (n *notices) take() []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list, n.bytes = nil, 0
	return list
}

// Watch implements plugin.Watcher.
func (a *adapter) Watch(ctx context.Context, tell func(string, json.RawMessage) error) error {
	a.watched.Store(true)
	for _, s := range a.living() {
		s.watch()
	}
	for {
		for _, one := range a.notices.take() {
			if err := tell(one.method, json.RawMessage(one.params)); err != nil {
				return err
			}
		}
		select {
		case <-a.notices.fresh:
		case <-ctx.Done():
			return nil
		case <-a.lifetime.Done():
			return nil
		}
	}
}

// stream opens a stream of notifications, which lasts until it is cancelled.
func (s *session) stream(e *exchange, wants map[string]any) error {
	return s.wire.request(e, "subscriptions/listen", params{"notifications": wants, "_meta": s.ownMeta()})
}

// completed hands it on by a call that runs: any will do, the host knows who was asked.
func (w *wire) completed(raw json.RawMessage) {
	var p struct{ ElicitationID string }
	running := w.running()
	if json.Unmarshal(raw, &p) != nil || len(raw) > maxNoteBytes || len(running) == 0 {
		return
	}
	_ = running[0].out.Note(logLevel, mcpcall.ElicitationComplete, raw, nil, text.Begin("the elicitation "+p.ElicitationID+" is complete", maxNoteBytes))
}

// announce hands a notification on to the host, but for the one that tells that a
// stream is open.
func (s *session) announce(method string, raw json.RawMessage) {
	var p struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications json.RawMessage            `json:"notifications"`
	}
	_ = json.Unmarshal(raw, &p)
	if method != methodListening {
		if !s.tell(method, raw) && method == mcpcall.ElicitationComplete {
			s.wire.completed(raw)
		}
		return
	}
	id := string(p.Meta[metaSubscription])
	if text, err := strconv.Unquote(id); err == nil {
		id = text
	}
	s.listsAcknowledged(id, p.Notifications)
	s.acknowledged(id, p.Notifications)
}
