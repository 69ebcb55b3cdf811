package mcpserver

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/turn/format"
)

// asMCP says whether content came as blocks of MCP, from a wrapped server: then
// it is passed on block by block as it was.
func asMCP(list []api.Content) bool {
	for _, c := range list {
		if c.Block || c.Type == "resource" || len(c.Extra) > 0 {
			return true
		}
	}
	return false
}

// blockOf is a block as its server made it. Text that stands where something is left out
// is one of its own.
func blockOf(c api.Content) mcpsdk.Content {
	if len(c.Extra) == 0 && c.Type == "text" { // most are, and need not be encoded here
		return &mcpsdk.TextContent{Text: c.Text}
	}
	fields := rawBlock(c)
	raw, _ := json.Marshal(fields) // of texts, bytes, and what was decoded from JSON
	return exactContent{inSDK(c, fields), raw}
}

// inSDK is a block for the SDK, which may not be able to read its further fields.
func inSDK(c api.Content, fields map[string]any) mcpsdk.Content {
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

// ownOfBlocks are the fields of a block that content has places for, by its kind, and
// ownOfContents those of the resource in it.
var (
	ownOfBlocks = map[string][]string{
		"text": {"type", "text"}, "json": {"type", "text"}, "blob": {"type", "data", "mimeType"},
		"resource_link": {"type", "uri", "name", "mimeType"}, "resource": {"type", "resource"},
	}
	ownOfContents = []string{"uri", "mimeType", "text", "blob"}
)

func rawBlock(c api.Content) map[string]any {
	fields := map[string]any{}
	extra := object.Of(c.Extra) // the supervisor has checked it
	for name, value := range extra.Without(ownOfBlocks[c.Type]...) {
		fields[name] = value
	}
	put(fields, c, string(extra["type"]))
	if c.Type == "resource" {
		inner := fields["resource"].(map[string]any)
		for name, value := range object.Of(extra["resource"]).Without(ownOfContents...) {
			inner[name] = value
		}
	}
	return fields
}

// put writes these fields. What a blob is shown as is the one thing that a tool says in
// its further fields.
func put(fields map[string]any, c api.Content, said string) {
	switch c.Type {
	case "blob":
		fields["type"] = "image"
		if said == `"audio"` {
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

// ofServer says whether a result is an error of a wrapped server's tool, and nothing
// else: then it has no word of toolhost's.
func ofServer(r *api.Result) bool {
	return isToolsError(r) && asMCP(r.Content)
}

// isToolsError: the tool itself has failed, and says why.
func isToolsError(r *api.Result) bool {
	return r.Status == api.StatusToolError && r.Kill.Cause == "" && r.ToolError != nil && r.ToolError.Kind == "error"
}

// passed is the content of a wrapped server's result, with what toolhost has to say
// in blocks of their own.
func passed(r *api.Result, version string) []mcpsdk.Content {
	list := []mcpsdk.Content{}
	if !ofServer(r) {
		bare := *r
		bare.Content, bare.Structured, bare.Warnings = nil, nil, nil
		if !r.OK() || r.Message != "" {
			list = content(&bare, false, version)
		}
	}
	for _, c := range r.Content {
		list = append(list, forVersion(blockOf(c), version))
	}
	if len(r.Structured) > 0 && string(r.Structured) != "null" && !isJSONObject(r.Structured) && version < multiRound {
		list = append(list, &mcpsdk.TextContent{Text: string(r.Structured)})
	}
	if note := format.Note(r); note != "" {
		list = append(list, &mcpsdk.TextContent{Text: note})
	}
	return list
}

// forVersion is a block for what a version has; text for what it has not.
func forVersion(block mcpsdk.Content, version string) mcpsdk.Content {
	exact, is := block.(exactContent)
	if !is {
		return block
	}
	switch b := exact.Content.(type) {
	case *mcpsdk.AudioContent:
		if version < audioSince {
			return &mcpsdk.TextContent{Text: "[audio is left out: the client speaks a version of MCP without it]"}
		}
	case *mcpsdk.ResourceLink:
		if version < linkSince {
			return &mcpsdk.TextContent{Text: b.Name + ": " + b.URI}
		}
	}
	return block
}

// metaFrom is a wrapped server's _meta of a result.
func metaFrom(raw json.RawMessage) mcpsdk.Meta {
	meta := metaIn(raw)
	for _, own := range []string{mcpsdk.MetaKeyServerInfo, mcpsdk.MetaKeySubscriptionID, executionKey} {
		delete(meta, own) // they are toolhost's to say
	}
	return meta
}

// exactMeta is _meta with its values as they were written: numbers keep their digits,
// which the SDK does not keep.
type exactMeta map[string]json.RawMessage

// withMeta is an object that has one.
type withMeta struct {
	Meta exactMeta `json:"_meta"`
}

// metaIn is that of an object.
func metaIn(raw []byte) mcpsdk.Meta {
	var one withMeta
	_ = json.Unmarshal(raw, &one)
	return one.Meta.sdk()
}

func (m exactMeta) sdk() mcpsdk.Meta {
	meta := mcpsdk.Meta{}
	for key, value := range m {
		meta[key] = value
	}
	return meta
}

// ofFailure is the structured value that a wrapped server's tool has given with its
// error.
func ofFailure(r *api.Result) json.RawMessage {
	var fields struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if isToolsError(r) {
		_ = json.Unmarshal(r.Meta, &fields)
	}
	return fields.Structured
}
