package gateway

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

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
		if uri := object.Text(raw, "resourceUri"); uri != "" {
			meta["ui"], changed = object.With(raw, "resourceUri", rename(uri)), true
		}
	}
	return changed
}

// renamedIn is an object with such a _meta.
func renamedIn(raw json.RawMessage, rename func(string) string) json.RawMessage {
	meta := verbatim.Meta(raw)
	if !renamedMeta(meta, rename) {
		return raw
	}
	return object.With(raw, "_meta", meta)
}

// renamedParts is a block with such a _meta, of its own and of the resource in it.
func renamedParts(block json.RawMessage, rename func(string) string) json.RawMessage {
	inner := object.Edited(block, func(name string, value json.RawMessage) json.RawMessage {
		if name == "resource" {
			return renamedIn(value, rename)
		}
		return value
	})
	return renamedIn(inner, rename)
}

// renamedContent is a block with all URIs that clients know: its own, those of the resource in
// it, and those of pages.
func renamedContent(block json.RawMessage, rename func(string) string) json.RawMessage {
	return object.Edited(renamedParts(block, rename), func(name string, value json.RawMessage) json.RawMessage {
		if name == "resource" {
			return object.Edited(value, renamedURI(rename))
		}
		return renamedURI(rename)(name, value)
	})
}

// renamedURI changes the fields of that name.
func renamedURI(rename func(string) string) func(string, json.RawMessage) json.RawMessage {
	return func(name string, value json.RawMessage) json.RawMessage {
		var uri string
		if name == "uri" && json.Unmarshal(value, &uri) == nil {
			value, _ = json.Marshal(rename(uri)) // text always can be
		}
		return value
	}
}

// Renamed gives the links, resources and pages in a result of an entry's tool the URIs that
// clients know.
func (o *offers) Renamed(entry string, r *api.Result) *api.Result {
	rename := o.linksOf(entry)
	if rename == nil {
		return r
	}
	own := *r
	own.Content, own.Meta = nil, renamedIn(r.Meta, rename)
	for _, c := range r.Content {
		if c.URI != "" {
			c.URI = rename(c.URI)
		}
		c.Extra = renamedParts(c.Extra, rename)
		own.Content = append(own.Content, c)
	}
	return &own
}

// RenameMeta is Renamed for the _meta of an entry's tool, which it changes.
func (o *offers) RenameMeta(entry string, meta mcpsdk.Meta) { renamedMeta(meta, o.linksOf(entry)) }
