package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
)

// foreign begins the alias of a URI that clients know as another server's: foreign, the
// entry's name, a slash and the server's own URI. In place of uiScheme it is foreignUI:
// clients show a tool's page only where its URI begins so.
const (
	foreign   = "toolhost:"
	uiScheme  = "ui://"
	foreignUI = uiScheme + "toolhost/"
)

func aliasOf(entry, uri string) string {
	if rest, is := strings.CutPrefix(uri, uiScheme); is {
		return foreignUI + entry + "/" + rest
	}
	return foreign + entry + "/" + uri
}

// ofAlias reads an aliasOf.
func ofAlias(alias string) (entry, uri string, is bool) {
	if rest, ui := strings.CutPrefix(alias, foreignUI); ui {
		entry, uri, is = strings.Cut(rest, "/")
		return entry, uiScheme + uri, is
	}
	rest, is := strings.CutPrefix(alias, foreign)
	entry, uri, _ = strings.Cut(rest, "/")
	return entry, uri, is
}

// linksOf is how an entry's URIs are written for clients; nil for one of no server.
func (g *gateway) linksOf(entry string) func(string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.servers, func(w *wrapped) bool { return w.Entry.Name == entry })
	if i < 0 {
		return nil
	}
	w := g.servers[i]
	return func(uri string) string {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.shown(w, uri)
	}
}

// pageKeys are those of a _meta that name a resource, the page that shows a tool's
// results: the older one of MCP Apps, and OpenAI's. The newer one is resourceUri in ui.
var pageKeys = []string{"ui/resourceUri", "openai/outputTemplate"}

// renamedMeta gives a server's own _meta the URIs that clients know.
func renamedMeta(meta mcpsdk.Meta, rename func(string) string) (changed bool) {
	if rename == nil {
		return false
	}
	for _, key := range pageKeys {
		var uri string
		if raw, is := meta[key].(json.RawMessage); is && json.Unmarshal(raw, &uri) == nil {
			shown, _ := json.Marshal(rename(uri)) // text always can be
			meta[key], changed = json.RawMessage(shown), true
		}
	}
	if raw, is := meta["ui"].(json.RawMessage); is {
		if uri := field(raw, "resourceUri"); uri != "" {
			meta["ui"], changed = withField(raw, "resourceUri", rename(uri)), true
		}
	}
	return changed
}

// renamedIn is an object with such a _meta.
func renamedIn(object json.RawMessage, rename func(string) string) json.RawMessage {
	meta := metaIn(object)
	if !renamedMeta(meta, rename) {
		return object
	}
	return withField(object, "_meta", meta)
}

// renamed gives a result's links, resources and pages the URIs that clients know.
func renamed(r *api.Result, rename func(string) string) *api.Result {
	if rename == nil {
		return r
	}
	own := *r
	own.Content, own.Meta = nil, renamedIn(r.Meta, rename)
	for _, c := range r.Content {
		if c.URI != "" {
			c.URI = rename(c.URI)
		}
		c.Extra = renamedIn(c.Extra, rename)
		own.Content = append(own.Content, c)
	}
	return &own
}
