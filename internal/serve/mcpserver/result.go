package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/turn/format"
)

const (
	// executionKey is where the receipt stands in _meta.
	executionKey = verbatim.ReceiptKey
	// maxReceiptBytes bounds it, and maxStructuredBytes the tool's own value.
	maxReceiptBytes    = 16 << 10
	maxStructuredBytes = 1 << 20
)

// present makes a result what clients of a version get: content blocks for the
// model, the structured value if the tool has given one, and the receipt in
// _meta. notes are for the model.
func present(r *api.Result, p outputCheck, version string, notes []string) *mcpsdk.CallToolResult {
	shown := *r
	shown.Warnings = append(slices.Clone(r.Warnings), notes...)
	broken := ""
	if p.to(version) && r.OK() { // a client that checks would lose the content, too
		broken = p.breach(r.Structured)
	}
	if broken != "" {
		shown.Warnings = append(shown.Warnings, broken)
	}
	out := &mcpsdk.CallToolResult{Content: content(&shown, p.wrapped && r.OK(), version), IsError: !r.OK() || broken != ""}
	if fitsStructured(shown.Structured, version) && !out.IsError {
		out.StructuredContent, shown.Structured = shown.Structured, nil
	}
	if value := ofFailure(r); fitsStructured(value, version) {
		out.StructuredContent = value
	}
	out.Meta = verbatim.ServerMeta(r.Meta)
	out.Meta[executionKey] = receipt(&shown)
	if own := object.Of(r.Meta).Without(ownOfResults...); len(own) > 0 {
		verbatim.Keep(out, own)
	}
	return out
}

// ownOfResults are the fields of a result that are made of what the tool has sent as such.
var ownOfResults = []string{"content", "structuredContent"}

// fitsStructured says whether a value can be structuredContent: for clients of before
// 2026-07-28 an object.
func fitsStructured(raw json.RawMessage, version string) bool {
	return len(raw) > 0 && len(raw) <= maxStructuredBytes && (version >= multiRound || object.Is(raw))
}

// The first versions that have these blocks: clients of older ones throw away
// the result that holds one.
const (
	audioSince = "2025-03-26"
	linkSince  = "2025-06-18"
)

// content are the blocks that the model reads, the same as everywhere but for those of
// a wrapped server's tool; text for what the client's version has not.
func content(r *api.Result, wrapped bool, version string) []mcpsdk.Content {
	list := []mcpsdk.Content{} // null is none in MCP
	if wrapped || asMCP(r.Content) {
		return passed(r, version)
	}
	for _, b := range format.MCPContent(r) {
		switch {
		case b.Type == "audio" && version < audioSince:
			list = append(list, &mcpsdk.TextContent{Text: fmt.Sprintf("[%s of %d bytes is left out: the client speaks a version of MCP without audio]", b.MIMEType, len(b.Data))})
		case b.Type == "resource_link" && version < linkSince:
			list = append(list, &mcpsdk.TextContent{Text: linkText(b)})
		case b.Type == "text":
			list = append(list, &mcpsdk.TextContent{Text: b.Text})
		case b.Type == "image":
			list = append(list, &mcpsdk.ImageContent{Data: b.Data, MIMEType: b.MIMEType})
		case b.Type == "audio":
			list = append(list, &mcpsdk.AudioContent{Data: b.Data, MIMEType: b.MIMEType})
		case b.Type == "resource":
			list = append(list, &mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: b.URI, MIMEType: b.MIMEType, Blob: b.Data}})
		case b.Type == "resource_link":
			list = append(list, &mcpsdk.ResourceLink{URI: b.URI, Name: b.Name, MIMEType: b.MIMEType})
		}
	}
	return list
}

func linkText(b format.MCPBlock) string {
	if b.Name == b.URI {
		return b.URI
	}
	return b.Name + ": " + b.URI
}
