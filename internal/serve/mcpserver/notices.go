package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/turn"
)

// Notice takes what the kept process of an entry's server announces, and with an
// empty method that the process has ended. share is the only one that the process
// serves; empty is all. It does not wait.
func (s *Server) Notice(entry, share, method string, params json.RawMessage) {
	from := origin{entry, share}
	switch method {
	case "", mcpcall.ServerEnded:
		s.soon(func() {
			s.gateway.rest(beforeAgain)
			s.gateway.takeOver(from)
		})
	case resourceUpdated:
		s.gateway.updated(source{origin: from, uri: object.Text(params, "uri")}, params)
	case mcpcall.ElicitationComplete:
		s.gateway.completed(from, params)
	case logMessage:
		s.logged(from, params)
	default:
		if listChanges[method] {
			s.gateway.listChanged(entry, method)
		}
	}
}

const (
	resourceUpdated = "notifications/resources/updated"
	logMessage      = "notifications/message"
)

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
		names := slices.Sorted(maps.Keys(g.listed.Prompts))
		var p mcpsdk.Prompt
		found := len(names) > 0 && json.Unmarshal([]byte(g.listed.Prompts[names[0]].Raw), &p) == nil
		if found {
			p.Meta = verbatim.Meta([]byte(g.listed.Prompts[names[0]].Raw))
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
	one := source{g.s.originFor(entry, peerOf(ctx).Identity), own, r.ProtocolVersion() < multiRound}
	before, err := g.watch(ctx, r.Session, r.Params.URI, one)
	if err != nil {
		return err
	}
	_, err = untilKept(func() (*api.Result, error) {
		like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
		a, err := g.request(ctx, like, entry, catalog.Subscribe, one.params())
		return a.result, err
	})
	if err != nil {
		g.streams.end(ctx, r.Params.URI)
	}
	if before == one {
		return err
	}
	if err != nil {
		g.unwatch(r.Session, r.Params.URI)
	}
	g.release(before) // the URI has led elsewhere before
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
	if g.streams.end(ctx, r.Params.URI) {
		return errStreamed
	}
	one, known := g.unwatch(r.Session, r.Params.URI)
	if !known { // there is nothing to end
		_, _, err := g.ownerFor(ctx, r.Params.URI)
		return notFound(err, r.Params.URI, r.ProtocolVersion())
	}
	if g.isWatched(one) {
		return nil
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
	_, err := g.request(context.WithoutCancel(ctx), like, one.entry, catalog.Unsubscribe, one.params())
	if g.isWatched(one) {
		g.s.soon(func() { g.subscribeAgain(one) })
	}
	return err
}

// release has servers end what nobody watches any more.
func (g *gateway) release(sources ...source) {
	sources = slices.DeleteFunc(sources, func(one source) bool { return one == source{} || g.isWatched(one) })
	if len(sources) > 0 {
		g.s.soon(func() { g.unsubscribeAll(sources) })
	}
}

func (g *gateway) unsubscribeAll(sources []source) {
	for _, one := range sources {
		if g.s.closing.Err() != nil {
			return
		}
		if _, err := g.inNameOf(one.share, one.entry, catalog.Unsubscribe, one.params(), one.client()); err != nil {
			g.s.config.Logger.Warn("a subscription does not end", "server", one.entry, "uri", one.uri, "why", err)
		}
		if g.isWatched(one) { // since somebody has subscribed meanwhile
			g.subscribeAgain(one)
		}
	}
}

func (g *gateway) keeps(entry string) bool {
	server := g.known().Of(entry)
	return server != nil && server.Entry.MCP.Keep != nil
}

// beforeAgain is how long a server whose process has ended is left alone: it may end
// each time.
const beforeAgain = 5 * time.Second

// takeOver has another process take over what the one that was kept, and has ended, did
// for clients.
func (g *gateway) takeOver(server origin) {
	if g.s.closing.Err() != nil {
		return
	}
	g.mu.Lock()
	for _, one := range g.watched.from(server) {
		g.lost[one] = "nobody has been asked"
	}
	g.mu.Unlock()
	all := g.subscribeLost(server.entry)
	g.listsEnded(server.entry)
	for pause := relistPause; !all && pause <= maxRelistPause && g.s.closing.Err() == nil; pause *= 2 {
		g.rest(pause)
		all = g.subscribeLost(server.entry)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.lost.of(server.entry) {
		g.s.config.Logger.Warn("a subscription is lost, unless the server announces other lists", "server", one.entry, "uri", one.uri, "why", g.lost[one])
	}
}

// losses are sources that sessions watch and a fresh process has refused to announce, with
// why: it may not have had its own lists then.
type losses map[source]string

func (l losses) of(entry string) (list []source) {
	for one := range l {
		if one.entry == entry {
			list = append(list, one)
		}
	}
	return list
}

// subscribeLost tries an entry's losses once more, and says whether none is left.
func (g *gateway) subscribeLost(entry string) (all bool) {
	g.mu.Lock()
	lost := g.lost.of(entry)
	g.mu.Unlock()
	all = true
	for _, one := range lost {
		all = g.s.closing.Err() == nil && g.subscribeAgain(one) && all
	}
	return all
}

// subscribeAgain has a server announce the changes of a source that clients watch, and
// tells them that it may have changed meanwhile. It is a loss if that is refused.
func (g *gateway) subscribeAgain(one source) bool {
	why := ""
	if g.isWatched(one) {
		result, err := untilKept(func() (*api.Result, error) {
			return g.inNameOf(one.share, one.entry, catalog.Subscribe, one.params(), one.client())
		})
		switch {
		case err != nil:
			why = err.Error()
		case !result.OK():
			why = cmp.Or(result.Message, string(result.Status))
		default:
			g.updated(one, nil)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.lost, one)
	if why != "" {
		g.lost[one] = why
	}
	return why == ""
}

// inNameOf makes a request that no client waits for, as a call of an identity's; empty is
// nobody's.
func (g *gateway) inNameOf(identity, entry, method string, params, client json.RawMessage) (*api.Result, error) {
	made := turn.Call{ID: rand.Text(), Tool: catalog.RequestName(entry, method), Arguments: params, Client: client}
	c, err := g.s.begin(g.s.newSession("", Peer{Identity: identity}), "", made, false)
	if err != nil {
		return nil, err
	}
	go c.run()
	<-c.done
	return c.result, nil
}
