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

	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
)

// gateway is what wrapped servers offer beside their tools. Names are kept apart by
// the prefixes of their entries. URIs stay as they are: of two servers with the same
// one the first in the file keeps it, and the others' have aliases.
type gateway struct {
	s       *Server
	streams streams

	mu        sync.Mutex
	servers   []*wrapped // in the order of the file
	prompts   map[string]promptOffer
	resources map[string]string // as JSON, by the URI that clients know
	templates map[string]string
	watched   watches
	early     map[*mcpsdk.ServerSession]map[string]*early // by the URI that is subscribed to
	opened    map[*mcpsdk.ServerSession][]opened          // the oldest first
	rooted    map[origin]*rooted
	relisted  map[string]*relisted // entries whose kept server has announced changes of its lists
	lost      losses
	unlists   bool // unlistedTemplate is there
}

// wrapped is one server.
type wrapped struct {
	catalog.Server
	uris      map[string]bool
	templates []*uritemplate.Template
}

type promptOffer struct {
	entry, own string
	raw        string // as clients get it
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
	g.prompts, g.resources, g.templates, g.watched = map[string]promptOffer{}, map[string]string{}, map[string]string{}, watches{}
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
	g.servers = nil
	for _, one := range g.s.config.Servers() {
		g.servers = append(g.servers, newWrapped(one))
	}
}

// offerServers offers what the servers have, and nothing else.
func (g *gateway) offerServers() (problems []error) {
	if g.s.config.Servers == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	prompts, resources, templates := map[string]promptOffer{}, map[string]string{}, map[string]string{}
	for _, w := range g.servers {
		for _, why := range w.Held {
			problems = append(problems, errors.New(why))
		}
		problems = append(problems, g.list(w, prompts, resources, templates)...)
	}
	problems = append(problems, show("prompt", prompts, &g.prompts, g.addPrompt, g.s.sdk.RemovePrompts)...)
	problems = append(problems, show("resource", resources, &g.resources, g.addResource, g.s.sdk.RemoveResources)...)
	problems = append(problems, show("resource template", templates, &g.templates, g.addTemplate, g.s.sdk.RemoveResourceTemplates)...)
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

func newWrapped(one catalog.Server) *wrapped {
	w := &wrapped{Server: one, uris: map[string]bool{}}
	for _, raw := range one.Offers.GetResources() {
		if uri := field(raw, "uri"); uri != "" {
			w.uris[uri] = true
		}
	}
	for _, raw := range one.Offers.GetTemplates() {
		if t, err := uritemplate.New(field(raw, "uriTemplate")); err == nil {
			w.templates = append(w.templates, t)
		}
	}
	return w
}

func field(raw []byte, name string) (text string) {
	_ = json.Unmarshal(fieldsOf(raw)[name], &text)
	return text
}

// list adds what one server offers.
func (g *gateway) list(w *wrapped, prompts map[string]promptOffer, resources, templates map[string]string) (problems []error) {
	for _, raw := range w.Offers.GetPrompts() {
		raw = withoutNulls(raw)
		own := field(raw, "name")
		name := own
		if prefix := w.Entry.MCP.Prefix; prefix != "" {
			name = prefix + mcpname.Separator + own
		}
		if first, taken := prompts[name]; own == "" || taken {
			problems = append(problems, fmt.Errorf("prompt %q of %s (%s) is left out: %s has its name already: give one of them another prefix", name, w.Entry.Name, w.Entry.Source, first.entry))
			continue
		}
		prompts[name] = promptOffer{w.Entry.Name, own, string(withField(raw, "name", name))}
	}
	for _, raw := range w.Offers.GetResources() {
		uri := field(raw, "uri")
		shown := g.shown(w, uri)
		if shown != uri {
			problems = append(problems, fmt.Errorf("resource %s of %s (%s) is offered as %s: another server has its URI", uri, w.Entry.Name, w.Entry.Source, shown))
		}
		resources[shown] = string(withField(named(raw, uri), "uri", shown))
	}
	for _, raw := range w.Offers.GetTemplates() {
		uri := field(raw, "uriTemplate")
		shown := w.shownTemplate(g, uri)
		if shown != uri {
			problems = append(problems, fmt.Errorf("resource template %s of %s (%s) is offered as %s: another server has one for the same URIs", uri, w.Entry.Name, w.Entry.Source, shown))
		}
		templates[shown] = string(withField(named(raw, uri), "uriTemplate", shown))
	}
	return problems
}

// owner is the server that a URI of clients' is read from, and its own URI: nil if
// there is no server at all. A URI that nobody lists is the first server's that has
// others of its scheme, or else the first one's.
func (g *gateway) owner(uri string) (*wrapped, string) { return ownerAmong(g.servers, uri) }

func ownerAmong(servers []*wrapped, uri string) (*wrapped, string) {
	if name, own, is := ofAlias(uri); is {
		for _, w := range servers {
			if w.Entry.Name == name {
				return w, own
			}
		}
	}
	for _, fits := range []func(*wrapped) bool{
		func(w *wrapped) bool { return w.uris[uri] },
		func(w *wrapped) bool { return w.hasTemplate(uri) },
		func(w *wrapped) bool {
			return slices.ContainsFunc(w.templates, func(t *uritemplate.Template) bool { return t.Regexp().MatchString(uri) })
		},
		func(w *wrapped) bool { return w.hasScheme(uri) },
		(*wrapped).hasResources,
	} {
		if i := slices.IndexFunc(servers, fits); i >= 0 {
			return servers[i], uri
		}
	}
	return nil, ""
}

// hasTemplate says whether a text is a template of the server, rather than a URI.
func (w *wrapped) hasTemplate(text string) bool {
	return slices.ContainsFunc(w.templates, func(t *uritemplate.Template) bool { return t.Raw() == text })
}

func (w *wrapped) hasScheme(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	for own := range w.uris {
		if strings.HasPrefix(own, scheme+":") {
			return true
		}
	}
	return slices.ContainsFunc(w.templates, func(t *uritemplate.Template) bool { return strings.HasPrefix(t.Raw(), scheme+":") })
}

func (w *wrapped) hasResources() bool {
	var declared struct{ Resources *struct{} }
	return json.Unmarshal(w.Offers.GetCapabilities(), &declared) == nil && declared.Resources != nil
}

// shown is what clients know a server's URI by: its own, if that leads to the server.
func (g *gateway) shown(w *wrapped, uri string) string {
	if of, own := g.owner(uri); uri == "" || of == w && own == uri {
		return uri
	}
	return aliasOf(w.Entry.Name, uri)
}

// shownTemplate is what clients know a server's template by: its own text, if that and what
// is made of it lead to the server.
func (w *wrapped) shownTemplate(g *gateway, text string) string {
	shown := g.shown(w, text)
	t, err := uritemplate.New(text)
	if err != nil {
		return shown
	}
	values := uritemplate.Values{}
	for _, name := range t.Varnames() {
		values.Set(name, uritemplate.String("toolhost"))
	}
	if made, err := t.Expand(values); err == nil && g.shown(w, made) != made {
		return aliasOf(w.Entry.Name, text)
	}
	return shown
}

// show adds entries that are new or have changed, and removes those that are gone or cannot
// be offered any more.
func show[T comparable](kind string, fresh map[string]T, known *map[string]T, add func(T) error, remove func(...string)) (problems []error) {
	before := *known
	*known = fresh
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

func (g *gateway) addPrompt(offer promptOffer) error {
	p := &mcpsdk.Prompt{}
	if err := json.Unmarshal([]byte(offer.raw), p); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Arguments, func(a *mcpsdk.PromptArgument) bool { return a == nil || a.Name == "" }) {
		return errors.New("an argument of it has no name")
	}
	p.Meta = metaIn([]byte(offer.raw))
	g.s.sdk.AddPrompt(p, g.getPrompt)
	return nil
}

func (g *gateway) addResource(raw string) error {
	r := &mcpsdk.Resource{}
	return adding(raw, r, func() {
		r.Meta = metaIn([]byte(raw))
		g.s.sdk.AddResource(r, g.readResource)
	})
}

func (g *gateway) addTemplate(raw string) error {
	t := &mcpsdk.ResourceTemplate{}
	return adding(raw, t, func() {
		t.Meta = metaIn([]byte(raw))
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
	_, is := g.resources[uri]
	for template := range g.templates {
		if t, err := uritemplate.New(template); !is && err == nil {
			is = t.Regexp().MatchString(uri)
		}
	}
	return is
}
