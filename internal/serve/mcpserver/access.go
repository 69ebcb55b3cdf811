package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// CodeForbidden is the JSON-RPC error of a method for which a client lacks the role.
const CodeForbidden = -32011

// needs are the roles that methods need, beside each other as the routes of the HTTP
// API are. What is not here makes something run, and needs what a call does.
var needs = map[string]access.Need{
	"initialize":               access.ToRead,
	"ping":                     access.ToRead,
	"server/discover":          access.ToRead,
	"logging/setLevel":         access.ToRead,
	"tools/list":               access.ToRead,
	"resources/list":           access.ToRead,
	"resources/templates/list": access.ToRead,
	"prompts/list":             access.ToRead,
	"subscriptions/listen":     access.ToRead,
	"tools/call":               access.ToCall,
}

// NeedOf is what a method of the protocol needs.
func NeedOf(method string) access.Need {
	if need, ok := needs[method]; ok {
		return need
	}
	if strings.HasPrefix(method, "notifications/") { // a client's word about itself, and its own requests
		return access.ToRead
	}
	return access.ToCall
}

// needFor is NeedOf for a request: to listen to resources makes calls, as to subscribe to
// them does.
func needFor(method string, r mcpsdk.Request) access.Need {
	if gateway.ListensToResources(r) {
		return access.ToCall
	}
	return NeedOf(method)
}

// rights hold requests to what who sends them may do.
type rights struct{ s *Server }

// identity is who has sent a request, as they are now.
func (a *rights) identity(ctx context.Context) access.Identity {
	if a.s.config.Access == nil {
		return access.Identity{Roles: []access.Role{access.Admin}}
	}
	return a.s.config.Access(peerOf(ctx).Identity)
}

// mayDo holds requests to the role of who sends them, and lists and calls to the tools
// that they may use. A tool that they may not is to them as if it were not there.
func (a *rights) mayDo(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		who := a.identity(ctx)
		if need := needFor(method, r); !who.Has(need) {
			return nil, &jsonrpc.Error{Code: CodeForbidden, Message: "this needs the role " + need.String() + ": ask toolhost's operator for it"}
		}
		if one, is := r.(*mcpsdk.CallToolRequest); is && !a.mayMean(who, one.Params) {
			return a.unknownTool(ctx, one)
		}
		result, err := next(ctx, method, r)
		if err == nil {
			result = forVersionOf(r, a.listFor(who, result))
		}
		return result, err
	}
}

// mayMean says whether a call is for a tool that its sender may use.
func (a *rights) mayMean(who access.Identity, p *mcpsdk.CallToolParamsRaw) bool {
	return a.s.config.Search || a.isOwn(p.Name) || who.MayUse(p.Name) // with the short list mayName says so
}

// isOwn: the tool is toolhost's, and everybody's.
func (a *rights) isOwn(name string) bool {
	if name == turn.StatusTool {
		return true
	}
	_, own := callTitles[name]
	return a.s.config.Search && (own || name == findTool)
}

// unknownTool is the SDK's answer to a name that nobody has.
func (a *rights) unknownTool(ctx context.Context, r *mcpsdk.CallToolRequest) (mcpsdk.Result, error) {
	select {
	case <-a.s.loaded:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", r.Params.Name)}
}

// mayName is why a tool cannot be called by its name in the short list. Who may not
// use all is not told the names of others.
func (a *rights) mayName(ctx context.Context, name string) error {
	who := a.identity(ctx)
	if !who.MayUse(name) {
		return &catalog.NotFoundError{Name: name}
	}
	err := a.s.know(ctx, name)
	if _, none := errors.AsType[*catalog.NotFoundError](err); none && !who.UsesAll() {
		return &catalog.NotFoundError{Name: name}
	}
	return err
}

// listFor is a list as somebody may see it. It is theirs: no cache may give it to
// others. What a wrapped server has beside its tools goes by the names of the requests
// for it, as the calls that these become do. Other results stay as they are.
func (a *rights) listFor(who access.Identity, result mcpsdk.Result) mcpsdk.Result {
	switch list := result.(type) {
	case *mcpsdk.ListToolsResult:
		own := *list
		own.Tools = keep(list.Tools, func(t *mcpsdk.Tool) bool { return a.isOwn(t.Name) || who.MayUse(t.Name) })
		own.Cacheable = ownCache(own.Cacheable)
		return &own
	case *mcpsdk.ReadResourceResult:
		list.Cacheable = ownCache(list.Cacheable)
	case *mcpsdk.DiscoverResult:
		list.Cacheable = ownCache(list.Cacheable)
	case *mcpsdk.ListPromptsResult:
		own := *list
		own.Prompts = keep(list.Prompts, func(p *mcpsdk.Prompt) bool { return a.s.gateway.MayGet(who, p.Name) })
		own.Cacheable = ownCache(own.Cacheable)
		return &own
	case *mcpsdk.ListResourcesResult:
		own := *list
		own.Resources = keep(list.Resources, func(r *mcpsdk.Resource) bool { return a.s.gateway.MayRead(who, r.URI) })
		own.Cacheable = ownCache(own.Cacheable)
		return &own
	case *mcpsdk.ListResourceTemplatesResult:
		own := *list
		own.ResourceTemplates = keep(list.ResourceTemplates, func(t *mcpsdk.ResourceTemplate) bool { return a.s.gateway.MayRead(who, t.URITemplate) })
		own.Cacheable = ownCache(own.Cacheable)
		return &own
	}
	return result
}

// keep is never nil, since a list is an array on the wire.
func keep[T any](list []T, may func(T) bool) []T {
	kept := []T{}
	for _, one := range list {
		if may(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

func ownCache(c mcpsdk.Cacheable) mcpsdk.Cacheable {
	if c.CacheScope != "" {
		c.CacheScope = "private"
	}
	return c
}

// offeredTo are the tools that somebody may find.
func (a *rights) offeredTo(ctx context.Context, offered map[string]offer) map[string]offer {
	who := a.identity(ctx)
	own := map[string]offer{}
	for name, one := range offered {
		if who.MayUse(name) {
			own[name] = one
		}
	}
	return own
}

// claim fills in whose a turn is.
func (a *rights) claim(identity string, spec *turn.Spec) {
	spec.Owner = identity
	if a.s.config.Claim != nil {
		a.s.config.Claim(a.s.config.Access(identity), spec)
	}
}

// mayAnswer says whether a client's own human may answer a question about its call. A
// tool's own question asks for more of what the call was given; whether the call may
// be made is for others to say, but for administrators.
func (a *rights) mayAnswer(identity string, i api.Interaction) bool {
	if a.s.config.Access == nil || i.Kind == api.KindQuestionnaire && !i.Host {
		return true
	}
	return a.s.config.Access(identity).Answers(identity)
}
