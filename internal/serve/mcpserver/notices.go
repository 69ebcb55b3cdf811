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
		s.soon(func() { s.gateway.subscribeAgain(entry) })
	case "notifications/resources/updated":
		var p mcpsdk.ResourceUpdatedNotificationParams
		if json.Unmarshal(params, &p) != nil {
			return
		}
		p.URI = s.gateway.shownBy(entry, p.URI)
		s.soon(func() { _ = s.sdk.ResourceUpdated(context.Background(), &p) })
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.soon(func() { s.gateway.listChanged(entry, method) })
	}
}

// soon runs f on a goroutine that Close waits for, unless the server is closed.
func (s *Server) soon(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Go(f)
	}
}

// maxRelist bounds the time in which changed lists are taken.
const maxRelist = time.Minute

// listChanged lists the entry's server anew and tells clients, also where nothing
// that they see has changed: it is what the server says.
func (g *gateway) listChanged(entry, method string) {
	if g.s.config.Renew == nil {
		return
	}
	ctx, cancel := context.WithTimeout(g.s.closing, maxRelist)
	defer cancel()
	g.s.config.Renew(entry)
	g.s.Reload(ctx)
	g.s.changed.Store(true)
	g.showAgain(method)
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
	entry, own, err := g.ownerFor(ctx, r.Params.URI)
	if err != nil {
		return err
	}
	if !g.keeps(entry) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
			"no subscription to resources of %s: each request to it has a process of its own, and none is left that could announce changes; set keep: true for it", entry)}
	}
	_, err = untilKept(func() (*api.Result, error) {
		like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
		return subscribed(g.request(ctx, like, entry, catalog.Subscribe, map[string]any{"uri": own}))
	})
	if err != nil {
		return err
	}
	if g.watch(r.Session, r.Params.URI) {
		g.s.ends(r.Session, func() { g.unwatch(r.Session, "") })
	}
	return nil
}

// subscribed is the result of a request to subscribe. It has no other answer: the
// protocol has no way to ask its client for something first.
func subscribed(a reply, err error) (*api.Result, error) {
	if err == nil && a.asks != nil {
		err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server asks its client for something before it takes a subscription, which cannot be answered"}
	}
	return a.result, err
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
		return err
	}
	if g.unwatch(r.Session, r.Params.URI) > 0 {
		return nil
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
	_, err = g.request(context.WithoutCancel(ctx), like, entry, catalog.Unsubscribe, map[string]any{"uri": own})
	return err
}

// watch notes a subscription; first says that it is the session's first one.
func (g *gateway) watch(by *mcpsdk.ServerSession, uri string) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first = g.watched[by] == nil
	if first {
		g.watched[by] = map[string]bool{}
	}
	g.watched[by][uri] = true
	return first
}

// unwatch forgets a session's subscription, or with an empty URI all of them, and
// says how many others watch the URI.
func (g *gateway) unwatch(by *mcpsdk.ServerSession, uri string) (others int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.watched[by], uri)
	if uri == "" {
		delete(g.watched, by)
	}
	for _, uris := range g.watched {
		if uris[uri] {
			others++
		}
	}
	return others
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

// subscribeAgain watches with a new process what clients have subscribed to, where
// the one that did has ended, and tells them that it may have changed meanwhile.
func (g *gateway) subscribeAgain(entry string) {
	select {
	case <-time.After(beforeAgain):
	case <-g.s.closing.Done():
		return
	}
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
