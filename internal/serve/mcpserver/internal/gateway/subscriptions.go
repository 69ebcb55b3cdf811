package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// watches are the subscriptions of sessions, by the URIs that these know.
type watches map[*mcpsdk.ServerSession]map[string]source

const (
	// maxWatched bounds the URIs that one session watches, maxWatchedBytes each.
	maxWatched      = 1024
	maxWatchedBytes = 8 << 10
)

// codeBusy is of the codes that JSON-RPC leaves to servers.
const codeBusy = -32000

// watchers are the URIs by which sessions watch a source, or what it is part of, with
// what they watch.
func (w watches) watchers(one source) map[string][]source {
	all := map[string][]source{}
	for _, own := range w {
		for uri, of := range own {
			if _, is := of.below(one); is && !slices.Contains(all[uri], of) {
				all[uri] = append(all[uri], of)
			}
		}
	}
	return all
}

func (w watches) has(one source) bool {
	for _, own := range w {
		for _, of := range own {
			if of.Origin == one.Origin && of.uri == one.uri { // to a server of one generation it is the same
				return true
			}
		}
	}
	return false
}

// from are the sources of an origin that sessions watch.
func (w watches) from(server Origin) (list []source) {
	for _, own := range w {
		for _, one := range own {
			if one.Origin == server && !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return list
}

// subscriptions are what sessions are subscribed to, and what is held for them.
type subscriptions struct {
	mu      sync.Mutex
	watched watches
	streams streams
	pending map[*mcpsdk.ServerSession]map[string]*pendingUpdates // by the URI that is subscribed to
	lost    losses
}

func newSubscriptions() subscriptions {
	return subscriptions{watched: watches{}, streams: streams{}, pending: map[*mcpsdk.ServerSession]map[string]*pendingUpdates{}, lost: losses{}}
}

// watch notes a subscription, and gives the source that the session has watched by
// this URI before; the zero source is for none.
func (s *subscriptions) watch(ctx context.Context, by *mcpsdk.ServerSession, uri string, one source) (before source, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.watched[by]
	before, known := own[uri]
	switch {
	case own == nil:
		own = map[string]source{}
		s.watched[by] = own
	case !known && len(own) == maxWatched:
		return source{}, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("this session has subscribed to %d resources, which is the most: end a subscription first", maxWatched)}
	}
	own[uri] = one
	s.notePending(ctx, uri)
	s.streams.add(ctx, uri)
	return before, nil
}

// unwatch forgets a session's subscription, and gives its source.
func (s *subscriptions) unwatch(by *mcpsdk.ServerSession, uri string) (one source, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known = s.watched[by][uri]
	delete(s.watched[by], uri)
	return one, known
}

// forget ends the subscriptions of a session that has ended, and gives their sources.
func (s *subscriptions) forget(by *mcpsdk.ServerSession) []source {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.watched[by]
	delete(s.watched, by)
	delete(s.streams, by)
	return slices.Collect(maps.Values(own))
}

// has says whether any session watches a source.
func (s *subscriptions) has(one source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched.has(one)
}

// hold keeps an update for those who cannot have it yet, and gives those who watch its source.
func (s *subscriptions) hold(one source, params json.RawMessage) (watchers map[string][]source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdPending(one, params)
	return s.watched.watchers(one)
}

// endStream notes that the stream that a request is does not need a URI any longer, and says
// whether others of the session do.
func (s *subscriptions) endStream(ctx context.Context, uri string) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams.end(ctx, uri)
}

// updateFor is an update as one session gets it; nil where the session watches another
// source by the same URI, or gets it behind the answer to its request. It shares nothing
// with those of others, which the SDK goes on to write to.
func (s *subscriptions) updateFor(by *mcpsdk.ServerSession, r mcpsdk.Request) mcpsdk.Request {
	p, is := r.GetParams().(*mcpsdk.ResourceUpdatedNotificationParams)
	if !is {
		return nil
	}
	change, _ := p.Meta[updateKey].(update)
	own := *p
	own.URI += change.rest
	own.Meta = maps.Clone(p.Meta)
	delete(own.Meta, updateKey)
	s.mu.Lock()
	defer s.mu.Unlock()
	of, known := s.watched[by][p.URI]
	if !known || change.of != of || change.only != nil && change.only != by {
		return nil
	}
	if held := s.pending[by][p.URI]; held != nil {
		raw, _ := json.Marshal(map[string]any{"_meta": own.Meta}) // of what was decoded from JSON
		held.add(change.rest, raw)
		return nil
	}
	if id := s.streams.idFor(by, p.URI); id != nil { // the SDK's may have ended
		own.Meta[mcpsdk.MetaKeySubscriptionID] = id
	}
	return &mcpsdk.ServerRequest[*mcpsdk.ResourceUpdatedNotificationParams]{Session: by, Params: &own}
}
