package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// Origin is where a server is: the kept process of an entry, for all or, where an identity
// has its own, for one share.
type Origin struct{ Entry, Share string }

// source is a resource of an entry's server, by the server's own URI. A subscription is
// to a source: what a client's URI leads to depends on who asks, and on what the
// servers list at that time.
type source struct {
	Origin
	uri string
	// former is for a client before 2026-07-28: a kept server that speaks both
	// generations has a process for each.
	former bool
}

// client is who asks for it again.
func (s source) client() json.RawMessage {
	if !s.former {
		return nil
	}
	return mcpcall.Client{Protocol: LastFormer}.JSON()
}

// params are those of requests about it.
func (s source) params() json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"uri": s.uri}) // text always can be
	return raw
}

// below returns the rest of the other URI, if it lies below this one: a server may announce a
// file of a folder that is watched.
func (s source) below(other source) (rest string, is bool) {
	rest, is = strings.CutPrefix(other.uri, s.uri)
	part := rest == "" || strings.HasPrefix(rest, "/") || strings.HasSuffix(s.uri, "/")
	return rest, is && part && s.Origin == other.Origin
}

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

// watch notes a subscription, and gives the source that the session has watched by
// this URI before; the zero source is for none.
func (g *Gateway) watch(ctx context.Context, by *mcpsdk.ServerSession, uri string, one source) (before source, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.host.Track(by)
	own := g.watched[by]
	before, known := own[uri]
	switch {
	case own == nil:
		own = map[string]source{}
		g.watched[by] = own
	case !known && len(own) == maxWatched:
		return source{}, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("this session has subscribed to %d resources, which is the most: end a subscription first", maxWatched)}
	}
	own[uri] = one
	g.notePending(ctx, uri)
	g.streams.add(ctx, uri)
	return before, nil
}

// unwatch forgets a session's subscription, and gives its source.
func (g *Gateway) unwatch(by *mcpsdk.ServerSession, uri string) (one source, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one, known = g.watched[by][uri]
	delete(g.watched[by], uri)
	return one, known
}

// unwatchAll ends the subscriptions of a session that has ended.
func (g *Gateway) unwatchAll(by *mcpsdk.ServerSession) {
	g.mu.Lock()
	own := g.watched[by]
	delete(g.watched, by)
	g.streams.forget(by)
	g.mu.Unlock()
	g.release(slices.Collect(maps.Values(own))...)
}

// isWatched says whether any session watches a source.
func (g *Gateway) isWatched(one source) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watched.has(one)
}

// updateKey has, in the _meta of an update that the SDK is to deliver, what has changed:
// the SDK knows sessions by the URI alone that they have subscribed to. No client sees it.
const updateKey = "dev.toolhost/update"

// update is of a source that is watched, or of a part of it.
type update struct {
	of   source
	rest string                // of the part's URI
	only *mcpsdk.ServerSession // nil for all who watch the source
}

// updated tells sessions that a source has changed, each by the URI that it knows.
func (g *Gateway) updated(one source, params json.RawMessage) {
	g.mu.Lock()
	g.holdPending(one, params)
	watchers := g.watched.watchers(one)
	g.mu.Unlock()
	for uri, sources := range watchers {
		for _, of := range sources {
			rest, _ := of.below(one)
			g.update(uri, update{of: of, rest: rest}, params)
		}
	}
}

// update has the SDK deliver one to those who know its source by a URI.
func (g *Gateway) update(uri string, change update, params json.RawMessage) {
	meta := verbatim.Meta(params)
	delete(meta, mcpsdk.MetaKeySubscriptionID)
	meta[updateKey] = change
	_ = g.sdk.ResourceUpdated(g.host.Closing, &mcpsdk.ResourceUpdatedNotificationParams{URI: uri, Meta: meta}) // which byMail does not let wait
}

// updateFor is an update as one session gets it; nil where the session watches another
// source by the same URI, or gets it behind the answer to its request. It shares nothing
// with those of others, which the SDK goes on to write to.
func (g *Gateway) updateFor(by *mcpsdk.ServerSession, r mcpsdk.Request) mcpsdk.Request {
	p, is := r.GetParams().(*mcpsdk.ResourceUpdatedNotificationParams)
	if !is {
		return nil
	}
	change, _ := p.Meta[updateKey].(update)
	own := *p
	own.URI += change.rest
	own.Meta = maps.Clone(p.Meta)
	delete(own.Meta, updateKey)
	g.mu.Lock()
	defer g.mu.Unlock()
	of, known := g.watched[by][p.URI]
	if !known || change.of != of || change.only != nil && change.only != by {
		return nil
	}
	if held := g.pending[by][p.URI]; held != nil {
		raw, _ := json.Marshal(map[string]any{"_meta": own.Meta}) // of what was decoded from JSON
		held.add(change.rest, raw)
		return nil
	}
	if id := g.streams.idFor(by, p.URI); id != nil { // the SDK's may have ended
		own.Meta[mcpsdk.MetaKeySubscriptionID] = id
	}
	return &mcpsdk.ServerRequest[*mcpsdk.ResourceUpdatedNotificationParams]{Session: by, Params: &own}
}

// origin is where an entry's server is for the sender of a request.
func (g *Gateway) origin(ctx context.Context, entry string) Origin {
	return Origin{entry, g.host.Share(ctx)}
}
