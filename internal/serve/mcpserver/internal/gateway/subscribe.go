package gateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// subscribe has the resource's server announce its changes. Only a kept process can:
// without one nothing is left that could.
func (g *Gateway) subscribe(ctx context.Context, r *mcpsdk.SubscribeRequest) error {
	return notFound(g.subscribeTo(ctx, r), r.Params.URI, r.ProtocolVersion())
}

func (g *Gateway) subscribeTo(ctx context.Context, r *mcpsdk.SubscribeRequest) error {
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
	one := source{g.origin(ctx, entry), own, r.ProtocolVersion() < MultiRound}
	before, err := g.subscriptions.watch(ctx, r.Session, r.Params.URI, one)
	g.host.Track(r.Session) // behind it, or what is noted after the session has ended would stay
	if err != nil {
		return err
	}
	_, err = untilKept(func() (*api.Result, error) {
		like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
		a, err := g.request(ctx, like, entry, catalog.Subscribe, one.params())
		return a.result, err
	})
	if err != nil {
		g.subscriptions.endStream(ctx, r.Params.URI)
	}
	if before == one {
		return err
	}
	if err != nil {
		g.subscriptions.unwatch(r.Session, r.Params.URI)
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
func (g *Gateway) unsubscribe(ctx context.Context, r *mcpsdk.UnsubscribeRequest) error {
	if g.subscriptions.endStream(ctx, r.Params.URI) {
		return errStreamed
	}
	one, known := g.subscriptions.unwatch(r.Session, r.Params.URI)
	if !known { // there is nothing to end
		_, _, err := g.ownerFor(ctx, r.Params.URI)
		return notFound(err, r.Params.URI, r.ProtocolVersion())
	}
	if g.subscriptions.has(one) {
		return nil
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: r.Params.Meta})
	_, err := g.request(context.WithoutCancel(ctx), like, one.Entry, catalog.Unsubscribe, one.params())
	if g.subscriptions.has(one) {
		g.host.Go(func() { g.renewSubscription(one) })
	}
	return err
}

// release has servers end what nobody watches any more.
func (g *Gateway) release(sources ...source) {
	sources = slices.DeleteFunc(sources, func(one source) bool { return one == source{} || g.subscriptions.has(one) })
	if len(sources) > 0 {
		g.host.Go(func() { g.unsubscribeAll(sources) })
	}
}

func (g *Gateway) unsubscribeAll(sources []source) {
	for _, one := range sources {
		if g.host.Closing.Err() != nil {
			return
		}
		if _, err := g.callFor(one.Share, one.Entry, catalog.Unsubscribe, one.params(), one.client()); err != nil {
			g.host.Logger.Warn("a subscription does not end", "server", one.Entry, "uri", one.uri, "why", err)
		}
		if g.subscriptions.has(one) { // since somebody has subscribed meanwhile
			g.renewSubscription(one)
		}
	}
}

func (o *offers) keeps(entry string) bool {
	server := o.known().Of(entry)
	return server != nil && server.Entry.MCP.Keep != nil
}
