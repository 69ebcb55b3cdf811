package gateway

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/hashicorp/go-hclog"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// Versions of the protocol.
const (
	// MultiRound is the first version in which servers make no requests.
	MultiRound = "2026-07-28"
	// LastFormer is the newest version of the older generation.
	LastFormer = "2025-11-25"
)

// Host is what a Gateway needs of the server that it is part of. Its functions are called from
// any goroutine. Call, CallFor and Reload may call the Gateway; the others must not, since it
// may be locked.
type Host struct {
	Logger hclog.Logger
	// Servers are the wrapped servers that are described by now; nil if there is nothing to
	// pass on. Renew, if not nil, has one say anew what it has.
	Servers func() []catalog.Server
	Renew   func(ctx context.Context, entry string) error

	// Identity is the sender of a request as they are now. Share is the share of kept
	// processes that serves their calls.
	Identity func(ctx context.Context) access.Identity
	Share    func(ctx context.Context) string
	// LogsOf is the share whose messages a session may get, if it wants any.
	LogsOf func(*mcpsdk.ServerSession) (share string, wanted bool)

	// Call makes a supervised call of a client's request, or joins the request to the call
	// that has asked for it. Where its answer cannot be a question, mayAsk is false.
	Call func(ctx context.Context, r *mcpsdk.CallToolRequest, mayAsk bool) (*api.Result, *verbatim.Inputs, error)
	// CallFor makes a call that no client waits for, in an identity's name; empty is nobody's.
	CallFor func(identity string, made turn.Call) (*api.Result, error)
	// Receipt is what is said of a call in the data of an error.
	Receipt func(*api.Result) json.RawMessage

	// Track has Forget called when a session has ended, also where it has by now.
	Track func(*mcpsdk.ServerSession)
	// Go runs a function that the server waits for when it closes, unless it has closed.
	Go func(f func())
	// Reload lists everything anew, and has clients hear of changes from now on.
	Reload func()
	// ToolsChanged has clients told that the tools have changed.
	ToolsChanged func()
	// Loaded is closed when the servers were described for the first time. Closing ends
	// when the server is closed.
	Loaded  <-chan struct{}
	Closing context.Context
}

// Gateway is what wrapped servers offer beside their tools. Its methods may be called from any
// goroutine.
type Gateway struct {
	offers
	subscriptions subscriptions

	mu        sync.Mutex
	mailboxes map[*mcpsdk.ServerSession]*mailbox
	opened    map[*mcpsdk.ServerSession][]opened // the oldest first
	rooted    map[Origin]*rooted
	relisted  map[string]*relisted // entries whose kept server has announced changes of its lists
}

// New makes a gateway. Declare and Attach follow.
func New(host Host) *Gateway {
	g := &Gateway{
		offers: offers{host: host}, subscriptions: newSubscriptions(),
		mailboxes: map[*mcpsdk.ServerSession]*mailbox{}, opened: map[*mcpsdk.ServerSession][]opened{}, rooted: map[Origin]*rooted{}, relisted: map[string]*relisted{},
	}
	g.get, g.read = g.getPrompt, g.readResource
	return g
}

// Declare declares what the gateway has, whatever its servers turn out to offer: a client may
// ask before they are described.
func (g *Gateway) Declare(o *mcpsdk.ServerOptions) {
	if g.host.Servers == nil {
		return
	}
	o.Capabilities.Prompts = &mcpsdk.PromptCapabilities{ListChanged: true}
	o.Capabilities.Resources = &mcpsdk.ResourceCapabilities{ListChanged: true, Subscribe: true}
	o.Capabilities.Completions = &mcpsdk.CompletionCapabilities{}
	o.Capabilities.Logging = &mcpsdk.LoggingCapabilities{}
	o.CompletionHandler = g.complete
	o.SubscribeHandler, o.UnsubscribeHandler = g.subscribe, g.unsubscribe
	o.RootsListChangedHandler = g.rootsChanged
}

// Attach gives the gateway the server that was made with what it has declared.
func (g *Gateway) Attach(sdk *mcpsdk.Server) { g.sdk = sdk }

// Receive is the middleware for what clients send.
func (g *Gateway) Receive(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return g.greet(g.whenDescribed(g.readUnlisted(g.holdUpdates(next))))
}

// aboutServers are the requests that wait until the servers are described.
var aboutServers = map[string]bool{
	"prompts/list": true, "prompts/get": true, "resources/list": true, "resources/templates/list": true, "resources/read": true,
	"completion/complete": true, "resources/subscribe": true,
}

// whenDescribed has requests wait that need to know what servers have.
func (g *Gateway) whenDescribed(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if aboutServers[method] || ListensToResources(r) {
			select {
			case <-g.host.Loaded:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return next(ctx, method, r)
	}
}

// Send is the middleware for what is sent to clients.
func (g *Gateway) Send(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return g.byMail(g.afterAcknowledged(next))
}

// Forget forgets a session that has ended.
func (g *Gateway) Forget(one *mcpsdk.ServerSession) {
	g.mu.Lock()
	delete(g.mailboxes, one)
	delete(g.opened, one)
	g.mu.Unlock()
	g.release(g.subscriptions.forget(one)...)
	g.forgetRoots(one)
}
