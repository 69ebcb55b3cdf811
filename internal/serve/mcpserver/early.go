package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// early is what a source's server announces while the request for a subscription to it
// has no answer yet. The SDK knows the subscription only behind the handler that makes
// it, and no stream may begin with an update.
type early struct {
	requests int                        // without an answer
	updates  map[string]json.RawMessage // the newest of each part, by the rest of its URI
	bytes    int                        // of these
}

// maxEarly bounds the parts that are told apart, and maxEarlyBytes what is said of them.
const (
	maxEarly      = 64
	maxEarlyBytes = 4 << 10
)

func (e *early) add(rest string, params json.RawMessage) {
	before, known := e.updates[rest]
	e.bytes += len(params) - len(before)
	if !known && len(e.updates) == maxEarly || e.bytes > maxEarlyBytes {
		clear(e.updates)
		rest, params, e.bytes = "", nil, 0 // all of it may have changed
	}
	e.updates[rest] = params
}

// subscribing is one request that subscribes, with what it has subscribed to so far.
type subscribing struct {
	by     *mcpsdk.ServerSession
	stream bool // its answer is one
	id     any  // of the stream, once that has begun; the mu of streams guards it
	uris   []string
}

type subscribingKey struct{}

// holdEarly holds updates of what a request subscribes to until that is answered: it is
// by the result, or by the notification with which a stream begins.
func (g *gateway) holdEarly(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
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

// afterAcknowledged ends that when a stream has begun.
func (g *gateway) afterAcknowledged(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if s, is := ctx.Value(subscribingKey{}).(*subscribing); is && method == "notifications/subscriptions/acknowledged" {
			g.streams.acknowledged(s, r)
			defer g.answered(s)
		}
		return next(ctx, method, r)
	}
}

// subscribes notes that a request subscribes to a URI. g is locked.
func (g *gateway) subscribes(ctx context.Context, uri string) {
	s, is := ctx.Value(subscribingKey{}).(*subscribing)
	if !is {
		return
	}
	s.uris = append(s.uris, uri)
	if g.early[s.by] == nil {
		g.early[s.by] = map[string]*early{}
	}
	if g.early[s.by][uri] == nil {
		g.early[s.by][uri] = &early{updates: map[string]json.RawMessage{}}
	}
	g.early[s.by][uri].requests++
}

// keepEarly keeps an update for those who cannot have it yet. g is locked.
func (g *gateway) keepEarly(one source, params json.RawMessage) {
	for by, uris := range g.early {
		for uri, e := range uris {
			if rest, is := g.watched[by][uri].below(one); is {
				e.add(rest, params)
			}
		}
	}
}

// answered hands on what was held for a request.
func (g *gateway) answered(s *subscribing) {
	for _, uri := range g.takeURIs(s) {
		of, updates := g.takeEarly(s.by, uri)
		for _, rest := range slices.Sorted(maps.Keys(updates)) {
			g.update(uri, update{of: of, rest: rest, only: s.by}, updates[rest])
		}
	}
}

func (g *gateway) takeURIs(s *subscribing) (uris []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uris, s.uris = s.uris, nil
	return uris
}

// takeEarly is nothing while another request for the same has no answer.
func (g *gateway) takeEarly(by *mcpsdk.ServerSession, uri string) (of source, updates map[string]json.RawMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.early[by][uri]
	if e.requests--; e.requests > 0 {
		return of, nil
	}
	if delete(g.early[by], uri); len(g.early[by]) == 0 {
		delete(g.early, by)
	}
	return g.watched[by][uri], e.updates
}
