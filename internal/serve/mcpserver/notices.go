package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// Notice takes what the kept process of an entry's server announces, and with an
// empty method that the process has ended. It does not wait.
func (s *Server) Notice(entry, method string, params json.RawMessage) {
	switch method {
	case "":
		s.soon(func() { s.gateway.processEnded(entry) })
	case resourceUpdated:
		var p mcpsdk.ResourceUpdatedNotificationParams
		if json.Unmarshal(params, &p) != nil {
			return
		}
		p.URI = s.gateway.shownBy(entry, p.URI)
		p.Meta = metaIn(params)
		delete(p.Meta, mcpsdk.MetaKeySubscriptionID)
		_ = s.sdk.ResourceUpdated(context.Background(), &p) // which byMail does not let wait
	default:
		if listChanges[method] {
			s.gateway.listChanged(entry, method)
		}
	}
}

const resourceUpdated = "notifications/resources/updated"

// soon runs f on a goroutine that Close waits for, unless the server is closed.
func (s *Server) soon(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Go(f)
	}
}

// showAgain adds something once more that is there: the SDK tells clients then.
func (g *gateway) showAgain(method string) {
	switch method {
	case "notifications/tools/list_changed":
		g.s.sdk.AddTool(statusTool(), g.s.status)
	case "notifications/prompts/list_changed":
		g.mu.Lock()
		names := slices.Sorted(maps.Keys(g.prompts))
		var p mcpsdk.Prompt
		found := len(names) > 0 && json.Unmarshal([]byte(g.prompts[names[0]].raw), &p) == nil
		if found {
			p.Meta = metaIn([]byte(g.prompts[names[0]].raw))
		}
		g.mu.Unlock()
		if found {
			g.s.sdk.AddPrompt(&p, g.getPrompt)
		}
	default:
		g.s.sdk.AddResourceTemplate(unlistedTemplate(), g.readResource)
	}
}

// subscribe has the resource's server announce its changes. Only a kept process can:
// without one nothing is left that could.
func (g *gateway) subscribe(ctx context.Context, r *mcpsdk.SubscribeRequest) error {
	return notFound(g.subscribeTo(ctx, r), r.Params.URI, r.ProtocolVersion())
}

func (g *gateway) subscribeTo(ctx context.Context, r *mcpsdk.SubscribeRequest) error {
	entry, own, err := g.ownerFor(ctx, r.Params.URI)
	if err != nil {
		return err
	}
	if !g.keeps(entry) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
			"no subscription to resources of %s: each request to it has a process of its own, and none is left that could announce changes; set keep: true for it", entry)}
	}
	if len(own) > maxWatchedBytes {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the URI has %d bytes: to be subscribed to it may have %d", len(own), maxWatchedBytes)}
	}
	fresh, err := g.watch(r.Session, r.Params.URI)
	if err != nil {
		return err
	}
	_, err = untilKept(func() (*api.Result, error) {
		like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
		a, err := g.request(ctx, like, entry, catalog.Subscribe, map[string]any{"uri": own})
		return a.result, err
	})
	if err != nil && fresh {
		g.unwatch(r.Session, r.Params.URI)
	}
	return err
}

// maxSubscribe bounds how often a server is asked for the same subscription.
const maxSubscribe = 3

// isKept says whether a call was one of a process that was there before it. A process
// that the call has started may not be the one that stays: where two calls have begun
// one each, the later ends with its call, and a subscription with it.
func isKept(r *api.Result) bool { return r.Instance == api.InstanceReused }

// untilKept asks for a subscription until a process that stays has it.
func untilKept(ask func() (*api.Result, error)) (result *api.Result, err error) {
	for range maxSubscribe {
		if result, err = ask(); err != nil || !result.OK() || isKept(result) {
			break
		}
	}
	return result, err
}

// unsubscribe ends a client's subscription, and the server's with the last one.
func (g *gateway) unsubscribe(ctx context.Context, r *mcpsdk.UnsubscribeRequest) error {
	entry, own, err := g.ownerFor(ctx, r.Params.URI)
	if err != nil {
		return notFound(err, r.Params.URI, r.ProtocolVersion())
	}
	if g.unwatch(r.Session, r.Params.URI) > 0 {
		return nil
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
	_, err = g.request(context.WithoutCancel(ctx), like, entry, catalog.Unsubscribe, map[string]any{"uri": own})
	return err
}

const (
	// maxWatched bounds the URIs that one session watches, maxWatchedBytes each.
	maxWatched      = 1024
	maxWatchedBytes = 8 << 10
)

// watch notes a subscription; fresh says that the session had none to the URI.
func (g *gateway) watch(by *mcpsdk.ServerSession, uri string) (fresh bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch uris := g.watched[by]; {
	case uris == nil:
		g.watched[by] = map[string]bool{}
		g.s.ends(by, func() { g.unwatchAll(by) })
	case uris[uri]:
		return false, nil
	case len(uris) == maxWatched:
		return false, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("this session has subscribed to %d resources, which is the most: end a subscription first", maxWatched)}
	}
	g.watched[by][uri] = true
	return true, nil
}

// unwatch forgets a session's subscription, and says how many others watch the URI.
func (g *gateway) unwatch(by *mcpsdk.ServerSession, uri string) (others int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.watched[by], uri)
	return g.watchers(uri)
}

// watchers counts the sessions that watch a URI. g is locked.
func (g *gateway) watchers(uri string) (n int) {
	for _, uris := range g.watched {
		if uris[uri] {
			n++
		}
	}
	return n
}

// unwatchAll ends the subscriptions of a session that has ended, where it was the last
// to watch.
func (g *gateway) unwatchAll(by *mcpsdk.ServerSession) {
	g.mu.Lock()
	uris := g.watched[by]
	delete(g.watched, by)
	maps.DeleteFunc(uris, func(uri string, _ bool) bool { return g.watchers(uri) > 0 })
	g.mu.Unlock()
	if len(uris) > 0 {
		g.s.soon(func() { g.unsubscribeAll(slices.Sorted(maps.Keys(uris))) })
	}
}

func (g *gateway) unsubscribeAll(uris []string) {
	for _, uri := range uris {
		g.mu.Lock()
		w, own := g.owner(uri)
		g.mu.Unlock()
		if w == nil || g.s.closing.Err() != nil {
			continue
		}
		raw, _ := json.Marshal(map[string]string{"uri": own}) // text always can be
		if _, err := g.inNameOf("", w.Entry.Name, catalog.Unsubscribe, raw); err != nil {
			g.s.config.Logger.Warn("a subscription does not end", "server", w.Entry.Name, "uri", uri, "why", err)
		}
	}
}

func (g *gateway) keeps(entry string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.servers, func(w *wrapped) bool { return w.Entry.Name == entry })
	return i >= 0 && g.servers[i].Entry.MCP.Keep != nil
}

// beforeAgain is how long a server whose process has ended is left alone: it may end
// each time.
const beforeAgain = 5 * time.Second

// processEnded has another process take over what the one that was kept did for
// clients.
func (g *gateway) processEnded(entry string) {
	g.rest(beforeAgain)
	if g.s.closing.Err() == nil {
		g.subscribeAgain(entry)
		g.listsEnded(entry)
	}
}

// subscribeAgain watches with a new process what clients have subscribed to, where
// the one that did has ended, and tells them that it may have changed meanwhile.
func (g *gateway) subscribeAgain(entry string) {
	lost := map[string]string{}
	g.mu.Lock()
	for _, uris := range g.watched {
		for uri := range uris {
			if w, own := g.owner(uri); w != nil && w.Entry.Name == entry {
				lost[uri] = own
			}
		}
	}
	g.mu.Unlock()
	for uri, own := range lost {
		result, err := g.resubscribe(entry, own)
		if err != nil {
			return
		}
		if !result.OK() {
			g.s.config.Logger.Warn("a subscription is lost", "server", entry, "uri", uri, "why", result.Message)
			continue
		}
		_ = g.s.sdk.ResourceUpdated(context.Background(), &mcpsdk.ResourceUpdatedNotificationParams{URI: uri})
	}
}

// resubscribe asks for a subscription in nobody's name.
func (g *gateway) resubscribe(entry, uri string) (*api.Result, error) {
	raw, _ := json.Marshal(map[string]string{"uri": uri})
	return untilKept(func() (*api.Result, error) { return g.inNameOf("", entry, catalog.Subscribe, raw) })
}

// inNameOf makes a request that no client waits for, as a call of an identity's; empty is
// nobody's.
func (g *gateway) inNameOf(identity, entry, method string, params json.RawMessage) (*api.Result, error) {
	made := turn.Call{ID: newID(), Tool: catalog.RequestName(entry, method), Arguments: params}
	c, err := g.s.begin(g.s.newSession("", Peer{Identity: identity}), "", made, false)
	if err != nil {
		return nil, err
	}
	go c.run()
	<-c.done
	return c.result, nil
}
