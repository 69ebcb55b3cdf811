package verbatim

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// Content is a block that is written as its server has written it.
type Content struct {
	mcpsdk.Content
	raw json.RawMessage
}

func (c Content) MarshalJSON() ([]byte, error) { return c.raw, nil }

// Block is a block as its server made it. Text that stands where something is left out
// is one of its own.
func Block(c api.Content) mcpsdk.Content {
	if len(c.Extra) == 0 && c.Type == "text" { // most are, and need not be encoded here
		return &mcpsdk.TextContent{Text: c.Text}
	}
	fields := BlockFields(c)
	raw, _ := json.Marshal(fields) // of texts, bytes, and what was decoded from JSON
	return Content{sdkContent(c, fields), raw}
}

// sdkContent is a block for the SDK, which may not be able to read its further fields.
func sdkContent(c api.Content, fields map[string]any) mcpsdk.Content {
	switch fields["type"] {
	case "image":
		return &mcpsdk.ImageContent{}
	case "audio":
		return &mcpsdk.AudioContent{}
	case "resource_link":
		return &mcpsdk.ResourceLink{URI: c.URI, Name: c.Name}
	case "resource":
		return &mcpsdk.EmbeddedResource{}
	}
	return &mcpsdk.TextContent{}
}

// contentFields are the fields of a block that content has places for, by its kind, and
// resourceFields those of the resource in it.
var (
	contentFields = map[string][]string{
		"text": {"type", "text"}, "json": {"type", "text"}, "blob": {"type", "data", "mimeType"},
		"resource_link": {"type", "uri", "name", "mimeType"}, "resource": {"type", "resource"},
	}
	resourceFields = []string{"uri", "mimeType", "text", "blob"}
)

// BlockFields are the fields of such a block.
func BlockFields(c api.Content) map[string]any {
	fields := map[string]any{}
	extra := object.Of(c.Extra) // the supervisor has checked it
	for name, value := range extra.Without(contentFields[c.Type]...) {
		fields[name] = value
	}
	put(fields, c, string(extra["type"]))
	if c.Type == "resource" {
		inner := fields["resource"].(map[string]any)
		for name, value := range object.Of(extra["resource"]).Without(resourceFields...) {
			inner[name] = value
		}
	}
	return fields
}

// put writes these fields. kind is the type that the tool's further fields name: it says what
// a blob is shown as.
func put(fields map[string]any, c api.Content, kind string) {
	switch c.Type {
	case "blob":
		fields["type"] = "image"
		if kind == `"audio"` {
			fields["type"] = "audio"
		}
		fields["data"], fields["mimeType"] = append([]byte{}, c.Data...), c.MIMEType
	case "resource_link":
		fields["type"], fields["uri"], fields["name"] = "resource_link", c.URI, c.Name
		optional(fields, "mimeType", c.MIMEType)
	case "resource":
		inner := map[string]any{"uri": c.URI}
		optional(inner, "mimeType", c.MIMEType)
		if c.Data != nil {
			inner["blob"] = c.Data
		} else {
			inner["text"] = c.Text
		}
		fields["type"], fields["resource"] = "resource", inner
	case "json":
		fields["type"], fields["text"] = "text", string(c.JSON)
	default:
		fields["type"], fields["text"] = "text", c.Text
	}
}

func optional(fields map[string]any, name, value string) {
	if value != "" {
		fields[name] = value
	}
}
