package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

const (
	// maxNotices bounds those of a server that a host has not taken; one that says the
	// same as another takes no room.
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

// add says whether there is room for one more.
func (n *notices) add(method string, params json.RawMessage) bool {
	one := notice{method, string(params)}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case slices.Contains(n.list, one):
		return true
	case len(n.list) == maxNotices || n.bytes+len(params) > maxNoticesBytes || len(params) > maxNoticeBytes:
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
	s.watching.Do(func() {
		_ = s.stream(context.Background(), newExchange(), map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
	})
}

// stream opens a stream of notifications, which lasts until it is cancelled.
func (s *session) stream(ctx context.Context, e *exchange, wants map[string]any) error {
	meta := map[string]any{}
	s.introduce(meta, clientOfHost)
	delete(meta, metaLogLevel)
	return s.wire.request(ctx, e, "subscriptions/listen", params{"notifications": wants, "_meta": meta})
}

// listen subscribes to a resource where the protocol has a stream for that.
func (s *session) listen(ctx context.Context, method string, p params) (json.RawMessage, bool, error) {
	uri, _ := p["uri"].(string)
	s.mu.Lock()
	open := s.streams[uri]
	delete(s.streams, uri)
	s.mu.Unlock()
	if open != nil {
		s.wire.cancel(open, "the subscription has ended")
		s.wire.forget(open)
	}
	if method == unsubscribe {
		return json.RawMessage("{}"), true, nil
	}
	e, acknowledged := newExchange(), make(chan struct{})
	if err := s.wire.number(e); err != nil {
		return nil, false, err
	}
	id := idText(e.id)
	s.mu.Lock()
	s.acks[id] = acknowledged // before the server can have said it
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.acks, id)
	}()
	if err := s.stream(ctx, e, map[string]any{"resourceSubscriptions": []string{uri}}); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	s.streams[uri] = e
	s.mu.Unlock()
	select {
	case <-acknowledged:
		return json.RawMessage("{}"), true, nil
	case <-e.done:
		if refused, ok := asError(e.answer); ok {
			return nil, true, s.refused(&call{ctx: ctx}, refused)
		}
		return nil, true, fmt.Errorf("MCP server %q has ended the subscription at once", s.options.Name)
	case <-s.wire.over:
		return nil, true, s.endedWhy(ctx)
	case <-ctx.Done():
		return nil, true, context.Cause(ctx)
	}
}

// completed hands it on by a call that runs: any will do, the host knows who was asked.
func (w *wire) completed(raw json.RawMessage) {
	var p struct{ ElicitationID string }
	running := w.running()
	if json.Unmarshal(raw, &p) != nil || len(raw) > maxNoteBytes || len(running) == 0 {
		return
	}
	_ = running[0].out.Note(logLevel, mcpcall.ElicitationComplete, raw, cut("the elicitation "+p.ElicitationID+" is complete", maxNoteBytes))
}

func idText(id jsonrpc.ID) string {
	raw, _ := json.Marshal(id.Raw())
	return string(raw)
}

// announce hands a notification on to the host, but for the one that tells that a
// stream is open.
func (s *session) announce(method string, raw json.RawMessage) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(raw, &p)
	if method != methodListening {
		if !s.tell(method, raw) && method == mcpcall.ElicitationComplete {
			s.wire.completed(raw)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(p.Meta[metaSubscription])
	if text, err := strconv.Unquote(id); err == nil {
		id = text
	}
	if ack := s.acks[id]; ack != nil {
		delete(s.acks, id)
		close(ack)
	}
}
