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
	by     *mcpsdk.ServerSession
	stream bool // its answer is one
	id     any  // of the stream, once that has begun; the mu of streams guards it
	uris   []string
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
		s := &subscribing{by: by, stream: method == "subscriptions/listen"}
		defer g.answered(s)
		return next(context.WithValue(ctx, subscribingKey{}, s), method, r)
	}
}

// afterAcknowledged sends what holdUpdates holds when a stream has begun.
func (g *Gateway) afterAcknowledged(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if s, is := ctx.Value(subscribingKey{}).(*subscribing); is && method == "notifications/subscriptions/acknowledged" {
			g.streams.acknowledged(s, r)
			defer g.answered(s)
		}
		return next(ctx, method, r)
	}
}

// notePending notes that a request subscribes to a URI. g is locked.
func (g *Gateway) notePending(ctx context.Context, uri string) {
	s, is := ctx.Value(subscribingKey{}).(*subscribing)
	if !is {
		return
	}
	s.uris = append(s.uris, uri)
	if g.pending[s.by] == nil {
		g.pending[s.by] = map[string]*pendingUpdates{}
	}
	if g.pending[s.by][uri] == nil {
		g.pending[s.by][uri] = &pendingUpdates{updates: map[string]json.RawMessage{}}
	}
	g.pending[s.by][uri].requests++
}

// holdPending keeps an update for those who cannot have it yet. g is locked.
func (g *Gateway) holdPending(one source, params json.RawMessage) {
	for by, uris := range g.pending {
		for uri, p := range uris {
			if rest, is := g.watched[by][uri].below(one); is {
				p.add(rest, params)
			}
		}
	}
}

// answered passes on what was held for a request.
func (g *Gateway) answered(s *subscribing) {
	for _, uri := range g.takeURIs(s) {
		of, updates := g.takePending(s.by, uri)
		for _, rest := range slices.Sorted(maps.Keys(updates)) {
			g.update(uri, update{of: of, rest: rest, only: s.by}, updates[rest])
		}
	}
}

func (g *Gateway) takeURIs(s *subscribing) (uris []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uris, s.uris = s.uris, nil
	return uris
}

// takePending is nothing while another request for the same has no answer.
func (g *Gateway) takePending(by *mcpsdk.ServerSession, uri string) (of source, updates map[string]json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pending[by][uri]
	if p.requests--; p.requests > 0 {
		return of, nil
	}
	if delete(g.pending[by], uri); len(g.pending[by]) == 0 {
		delete(g.pending, by)
	}
	return g.watched[by][uri], p.updates
}
