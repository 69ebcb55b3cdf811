package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// gateway is what wrapped servers offer beside their tools.
type gateway struct {
	s       *Server
	streams streams

	mu       sync.Mutex
	servers  directory.Directory
	listed   directory.Listing
	parsed   []*uritemplate.Template // those that are listed: what they match takes long to make
	watched  watches
	early    map[*mcpsdk.ServerSession]map[string]*early // by the URI that is subscribed to
	opened   map[*mcpsdk.ServerSession][]opened          // the oldest first
	rooted   map[origin]*rooted
	relisted map[string]*relisted // entries whose kept server has announced changes of its lists
	lost     losses
	unlists  bool // unlistedTemplate is there
}

// unlisted carries a URI that no server lists, escaped, to the handler of resources. No
// client sees it.
const unlisted = "toolhost-unlisted:"

// meantBy is the URI that a client has sent.
func meantBy(uri string) string {
	if escaped, is := strings.CutPrefix(uri, unlisted); is {
		uri, _ = url.QueryUnescape(escaped) // as anyResource has it
	}
	return uri
}

// ofServers are the requests that wait until the servers are described.
var ofServers = map[string]bool{
	"prompts/list": true, "prompts/get": true, "resources/list": true, "resources/templates/list": true, "resources/read": true,
	"completion/complete": true, "resources/subscribe": true,
}

var listChanges = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}

// into declares what a gateway has, whatever its servers turn out to offer: a client
// may ask before they are described.
func (g *gateway) into(s *Server, o *mcpsdk.ServerOptions) {
	g.s = s
	g.watched = watches{}
	g.early = map[*mcpsdk.ServerSession]map[string]*early{}
	g.streams.open = map[*mcpsdk.ServerSession]map[string][]*subscribing{}
	g.lost = losses{}
	g.rooted, g.relisted, g.opened = map[origin]*rooted{}, map[string]*relisted{}, map[*mcpsdk.ServerSession][]opened{}
	if s.config.Servers == nil {
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

// knowServers takes the servers as they are described now.
func (g *gateway) knowServers() {
	if g.s.config.Servers == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.servers = directory.New(g.s.config.Servers())
}

// offerServers offers what the servers have, and nothing else.
func (g *gateway) offerServers() (problems []error) {
	if g.s.config.Servers == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.listed
	g.listed, problems = g.servers.List()
	problems = append(problems, show("prompt", before.Prompts, g.listed.Prompts, g.addPrompt, g.s.sdk.RemovePrompts)...)
	problems = append(problems, show("resource", before.Resources, g.listed.Resources, g.addResource, g.s.sdk.RemoveResources)...)
	problems = append(problems, show("resource template", before.Templates, g.listed.Templates, g.addTemplate, g.s.sdk.RemoveResourceTemplates)...)
	g.parsed = nil
	for template := range g.listed.Templates {
		if t, err := uritemplate.New(template); err == nil {
			g.parsed = append(g.parsed, t)
		}
	}
	if len(g.servers) > 0 && !g.unlists { // each time clients are told that resources have changed
		g.unlists = true
		g.s.sdk.AddResourceTemplate(unlistedTemplate(), g.readResource)
	}
	select {
	case <-g.s.loaded:
		g.s.changed.Store(true)
	default:
	}
	return problems
}

// show adds entries that are new or have changed, and removes those that are gone or cannot
// be offered any more.
func show[T comparable](kind string, before, fresh map[string]T, add func(T) error, remove func(...string)) (problems []error) {
	var gone []string
	for name := range before {
		if _, still := fresh[name]; !still {
			gone = append(gone, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		if old, is := before[name]; is && old == fresh[name] {
			continue
		}
		if err := add(fresh[name]); err != nil {
			problems = append(problems, fmt.Errorf("%s %q is left out: %w", kind, name, err))
			delete(fresh, name)
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		remove(gone...)
	}
	return problems
}

// unlistedTemplate has resources read that no server lists.
func unlistedTemplate() *mcpsdk.ResourceTemplate {
	return &mcpsdk.ResourceTemplate{Name: unlisted, URITemplate: unlisted + "{+uri}"}
}

func (g *gateway) addPrompt(offer directory.Prompt) error {
	p := &mcpsdk.Prompt{}
	if err := json.Unmarshal([]byte(offer.Raw), p); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Arguments, func(a *mcpsdk.PromptArgument) bool { return a == nil || a.Name == "" }) {
		return errors.New("an argument of it has no name")
	}
	p.Meta = verbatim.Meta([]byte(offer.Raw))
	g.s.sdk.AddPrompt(p, g.getPrompt)
	return nil
}

func (g *gateway) addResource(raw string) error {
	r := &mcpsdk.Resource{}
	return adding(raw, r, func() {
		r.Meta = verbatim.Meta([]byte(raw))
		g.s.sdk.AddResource(r, g.readResource)
	})
}

func (g *gateway) addTemplate(raw string) error {
	t := &mcpsdk.ResourceTemplate{}
	return adding(raw, t, func() {
		t.Meta = verbatim.Meta([]byte(raw))
		g.s.sdk.AddResourceTemplate(t, g.readResource)
	})
}

// adding gives the SDK what it panics about where it does not like it.
func adding(raw string, into any, add func()) (err error) {
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be offered: %v", p)
		}
	}()
	add()
	return nil
}

// anyResource has resources read that servers know and do not list, and keeps what
// that takes out of lists.
func (g *gateway) anyResource(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if one, ok := r.(*mcpsdk.ReadResourceRequest); ok && g.s.config.Servers != nil && !g.lists(one.Params.URI) {
			if _, _, err := g.ownerFor(ctx, one.Params.URI); err != nil {
				return nil, notFound(err, one.Params.URI, one.ProtocolVersion())
			}
			one.Params.URI = unlisted + url.QueryEscape(one.Params.URI) // or the template would not fit each
		}
		result, err := next(ctx, method, r)
		if list, ok := result.(*mcpsdk.ListResourceTemplatesResult); ok && err == nil {
			list.ResourceTemplates = slices.DeleteFunc(slices.Clone(list.ResourceTemplates), func(t *mcpsdk.ResourceTemplate) bool { return t.Name == unlisted })
			if list.ResourceTemplates == nil {
				list.ResourceTemplates = []*mcpsdk.ResourceTemplate{}
			}
		}
		return result, err
	}
}

func (g *gateway) lists(uri string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, is := g.listed.Resources[uri]
	return is || slices.ContainsFunc(g.parsed, func(t *uritemplate.Template) bool { return t.Regexp().MatchString(uri) })
}
