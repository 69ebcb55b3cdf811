package gateway

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

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// offers are what servers have, by the names and URIs that clients know, and what of it is
// listed.
type offers struct {
	host Host
	sdk  *mcpsdk.Server
	get  mcpsdk.PromptHandler
	read mcpsdk.ResourceHandler

	mu      sync.Mutex
	servers directory.Directory
	listed  directory.Listing
	parsed  []*uritemplate.Template // those that are listed: what they match takes long to make
	unlists bool                    // unlistedTemplate is there
}

// unlisted carries a URI that no server lists, or that the SDK does not take, escaped, to the
// handler of resources. No client sees it.
const unlisted = "toolhost-unlisted:"

// requestedURI is the URI that a client has sent.
func requestedURI(uri string) string {
	if escaped, is := strings.CutPrefix(uri, unlisted); is {
		uri, _ = url.QueryUnescape(escaped) // as readUnlisted has it
	}
	return uri
}

// sdkURI is what the SDK knows a resource by, the opposite of requestedURI. It takes no URI
// that package url cannot parse, and servers have such: notes://My Vault/n.md.
func sdkURI(uri string) string {
	if _, err := url.Parse(uri); err != nil {
		return unlisted + url.QueryEscape(uri)
	}
	return uri
}

var listChanges = map[string]bool{
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
}

// IsListChange says whether a notification announces that a list has changed.
func IsListChange(method string) bool { return listChanges[method] }

// ListensToResources says whether a request begins a stream of updates of resources.
func ListensToResources(r mcpsdk.Request) bool {
	one, is := r.(*mcpsdk.SubscriptionsListenRequest)
	return is && one.Params != nil && one.Params.Notifications != nil && len(one.Params.Notifications.ResourceSubscriptions) > 0
}

// Describe takes the servers as they are described now.
func (o *offers) Describe() {
	if o.host.Servers == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.servers = directory.New(o.host.Servers())
}

// Offer offers what the servers have, and nothing else; problems say what cannot be.
func (o *offers) Offer() (problems []error) {
	if o.host.Servers == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.listed
	o.listed, problems = o.servers.List()
	problems = append(problems, show("prompt", before.Prompts, o.listed.Prompts, o.addPrompt, o.sdk.RemovePrompts)...)
	problems = append(problems, show("resource", before.Resources, o.listed.Resources, o.addResource, o.removeResources)...)
	problems = append(problems, show("resource template", before.Templates, o.listed.Templates, o.addTemplate, o.sdk.RemoveResourceTemplates)...)
	o.parsed = nil
	for template := range o.listed.Templates {
		if t, err := uritemplate.New(template); err == nil {
			o.parsed = append(o.parsed, t)
		}
	}
	if len(o.servers) > 0 && !o.unlists { // each time clients are told that resources have changed
		o.unlists = true
		o.sdk.AddResourceTemplate(unlistedTemplate(), o.read)
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

func (o *offers) addPrompt(offer directory.Prompt) error {
	p := &mcpsdk.Prompt{}
	if err := json.Unmarshal([]byte(offer.Raw), p); err != nil {
		return object.Worded(err)
	}
	if slices.ContainsFunc(p.Arguments, func(a *mcpsdk.PromptArgument) bool { return a == nil || a.Name == "" }) {
		return errors.New("an argument of it has no name")
	}
	p.Meta = verbatim.Meta([]byte(offer.Raw))
	o.sdk.AddPrompt(p, o.get)
	return nil
}

func (o *offers) addResource(raw string) error {
	r := &mcpsdk.Resource{}
	return adding(raw, r, func() {
		r.Meta = verbatim.Meta([]byte(raw))
		r.URI = sdkURI(r.URI) // Entries has it written as it is
		o.sdk.AddResource(r, o.read)
	})
}

func (o *offers) removeResources(uris ...string) {
	for i, uri := range uris {
		uris[i] = sdkURI(uri)
	}
	o.sdk.RemoveResources(uris...)
}

func (o *offers) addTemplate(raw string) error {
	t := &mcpsdk.ResourceTemplate{}
	return adding(raw, t, func() {
		t.Meta = verbatim.Meta([]byte(raw))
		o.sdk.AddResourceTemplate(t, o.read)
	})
}

// adding decodes an entry and adds it. The SDK panics about one that it does not take.
func adding(raw string, into any, add func()) (err error) {
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		return object.Worded(err)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be offered: %v", p)
		}
	}()
	add()
	return nil
}

// readUnlisted has resources read that servers know and do not list, and keeps what
// that takes out of lists.
func (o *offers) readUnlisted(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if one, ok := r.(*mcpsdk.ReadResourceRequest); ok && o.host.Servers != nil && !o.lists(one.Params.URI) {
			if _, _, err := o.ownerFor(ctx, one.Params.URI); err != nil {
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

func (o *offers) lists(uri string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.listed.Resources[uri]
	return is && sdkURI(uri) == uri || slices.ContainsFunc(o.parsed, func(t *uritemplate.Template) bool { return t.Regexp().MatchString(uri) })
}

// Entries give what clients are shown of prompts, resources and templates as their servers
// have written it.
func (o *offers) Entries() verbatim.Entries {
	return verbatim.Entries{
		Prompt: func(p *mcpsdk.Prompt) object.Fields { return object.Of([]byte(o.listing().Prompts[p.Name].Raw)) },
		Resource: func(r *mcpsdk.Resource) object.Fields {
			return object.Of([]byte(o.listing().Resources[requestedURI(r.URI)]))
		},
		Template: func(t *mcpsdk.ResourceTemplate) object.Fields {
			return object.Of([]byte(o.listing().Templates[t.URITemplate]))
		},
	}
}

// listing is what is listed, which does not change.
func (o *offers) listing() directory.Listing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listed
}

// MayGet says whether somebody may get a prompt.
func (o *offers) MayGet(who access.Identity, prompt string) bool {
	return who.MayUse(catalog.RequestName(o.promptOf(prompt).Entry, catalog.GetPrompt))
}

// MayRead says whether somebody may read a URI, or what a template of URIs leads to.
func (o *offers) MayRead(who access.Identity, uri string) bool {
	server, _ := o.known().Owner(requestedURI(uri))
	return server != nil && who.MayUse(catalog.RequestName(server.Entry.Name, catalog.ReadResource))
}
