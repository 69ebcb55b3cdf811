package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pendingUpdates are what a source's server announces while the request for a subscription to
// it has no answer yet. The SDK knows the subscription only behind the handler that makes
// it, and no stream may begin with an update.
type pendingUpdates struct {
	requests int                        // without an answer
	updates  map[string]json.RawMessage // the newest of each part, by the rest of its URI
	bytes    int                        // of these
}

// maxPending bounds the parts that are told apart, and maxPendingBytes what is said of them.
const (
	maxPending      = 64
	maxPendingBytes = 4 << 10
)

func (p *pendingUpdates) add(rest string, params json.RawMessage) {
	before, known := p.updates[rest]
	p.bytes += len(params) - len(before)
	if !known && len(p.updates) == maxPending || p.bytes > maxPendingBytes {
		clear(p.updates)
		rest, params, p.bytes = "", nil, 0 // all of it may have changed
	}
	p.updates[rest] = params
}

// subscribing is one request that subscribes, with what it has subscribed to so far.
type subscribing struct {
	session *mcpsdk.ServerSession
	stream  bool // its answer is one

	// subscriptions guards these.
	id   any // of the stream, once that has begun
	uris []string
}

type subscribingKey struct{}

// holdUpdates holds updates of what a request subscribes to until that is answered: it is
// by the result, or by the notification with which a stream begins.
func (g *Gateway) holdUpdates(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		by, ours := r.GetSession().(*mcpsdk.ServerSession)
		if !ours || method != "resources/subscribe" && method != "subscriptions/listen" {
			return next(ctx, method, r)
		}
		s := &subscribing{session: by, stream: method == "subscriptions/listen"}
		defer g.answered(s)
		return next(context.WithValue(ctx, subscribingKey{}, s), method, r)
	}
}

// afterAcknowledged sends what holdUpdates holds when a stream has begun.
func (g *Gateway) afterAcknowledged(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if s, is := ctx.Value(subscribingKey{}).(*subscribing); is && method == "notifications/subscriptions/acknowledged" {
			g.subscriptions.acknowledged(s, r)
			defer g.answered(s)
		}
		return next(ctx, method, r)
	}
}

// notePending notes that a request subscribes to a URI. s is locked.
func (s *subscriptions) notePending(ctx context.Context, uri string) {
	by, is := ctx.Value(subscribingKey{}).(*subscribing)
	if !is {
		return
	}
	by.uris = append(by.uris, uri)
	own := s.pending[by.session]
	if own == nil {
		own = map[string]*pendingUpdates{}
		s.pending[by.session] = own
	}
	if own[uri] == nil {
		own[uri] = &pendingUpdates{updates: map[string]json.RawMessage{}}
	}
	own[uri].requests++
}

// holdPending keeps an update for those who cannot have it yet. s is locked.
func (s *subscriptions) holdPending(one source, params json.RawMessage) {
	for by, uris := range s.pending {
		for uri, p := range uris {
			if rest, is := s.watched[by][uri].below(one); is {
				p.add(rest, params)
			}
		}
	}
}

// answered passes on what was held for a request.
func (g *Gateway) answered(s *subscribing) {
	for _, uri := range g.subscriptions.takeURIs(s) {
		of, updates := g.subscriptions.takePending(s.session, uri)
		for _, rest := range slices.Sorted(maps.Keys(updates)) {
			g.update(uri, update{of: of, rest: rest, only: s.session}, updates[rest])
		}
	}
}

func (s *subscriptions) takeURIs(by *subscribing) (uris []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris, by.uris = by.uris, nil
	return uris
}

// takePending is nothing while another request for the same has no answer.
func (s *subscriptions) takePending(by *mcpsdk.ServerSession, uri string) (of source, updates map[string]json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[by][uri]
	if p.requests--; p.requests > 0 {
		return of, nil
	}
	if delete(s.pending[by], uri); len(s.pending[by]) == 0 {
		delete(s.pending, by)
	}
	return s.watched[by][uri], p.updates
}
