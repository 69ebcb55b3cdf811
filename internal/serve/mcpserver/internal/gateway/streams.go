package gateway

import (
	"context"
	"errors"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// streams are those that clients have asked for and not ended, by their sessions and the
// URIs that they are for, the newest last. The SDK has one for each URI, and ends a
// subscription with any of them. The lock of subscriptions guards them.
type streams map[*mcpsdk.ServerSession]map[string][]*subscribing

// errStreamed has the SDK keep a subscription.
var errStreamed = errors.New("another stream of the session is for the same resource")

// streamOf is the stream that a request asks for, or nil.
func streamOf(ctx context.Context) *subscribing {
	if s, is := ctx.Value(subscribingKey{}).(*subscribing); is && s.stream {
		return s
	}
	return nil
}

// add notes that a request's stream, if it is one, is for a URI.
func (all streams) add(ctx context.Context, uri string) {
	s := streamOf(ctx)
	if s == nil {
		return
	}
	if all[s.session] == nil {
		all[s.session] = map[string][]*subscribing{}
	}
	all[s.session][uri] = append(all[s.session][uri], s)
}

// end notes that it is no longer, and says whether others of the session are.
func (all streams) end(ctx context.Context, uri string) (others bool) {
	s := streamOf(ctx)
	if s == nil {
		return false
	}
	own := all[s.session]
	rest := slices.DeleteFunc(own[uri], func(other *subscribing) bool { return other == s })
	if len(rest) > 0 {
		own[uri] = rest
		return true
	}
	if delete(own, uri); len(own) == 0 {
		delete(all, s.session)
	}
	return false
}

// idFor is the id of a session's newest stream that has begun and is for a URI, or nil.
func (all streams) idFor(by *mcpsdk.ServerSession, uri string) (id any) {
	for _, s := range all[by][uri] {
		if s.id != nil {
			id = s.id
		}
	}
	return id
}

// acknowledged notes a stream's id, by which it begins.
func (s *subscriptions) acknowledged(by *subscribing, r mcpsdk.Request) {
	if p, is := r.GetParams().(*mcpsdk.SubscriptionsAcknowledgedParams); is {
		s.mu.Lock()
		defer s.mu.Unlock()
		by.id = p.Meta[mcpsdk.MetaKeySubscriptionID]
	}
}
