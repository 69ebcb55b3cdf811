package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn/format"
)

const (
	// executionKey is where the result stands in _meta if the tool has an output
	// schema of its own.
	executionKey = "toolhost.dev/execution"
	// maxRecordBytes bounds it.
	maxRecordBytes = 1 << 20
)

// present makes a result what clients of a version get: content blocks for the
// model, and the whole result beside the structured one of a tool that promises
// such, or in its place. notes are for the model.
func present(r *supervisor.Result, p promise, version string, notes []string) *mcpsdk.CallToolResult {
	shown := *r
	shown.Warnings = append(slices.Clone(r.Warnings), notes...)
	if !p.made {
		return &mcpsdk.CallToolResult{Content: content(&shown, version), StructuredContent: record(&shown, true), IsError: !r.OK()}
	}
	broken := ""
	if r.OK() { // a client that checks would lose the content, too
		broken = p.breach(r.Structured)
	}
	if broken != "" {
		shown.Warnings = append(shown.Warnings, broken)
	}
	out := &mcpsdk.CallToolResult{Content: content(&shown, version), IsError: !r.OK() || broken != ""}
	if !out.IsError {
		out.StructuredContent, shown.Structured = shown.Structured, nil
	}
	out.Meta = mcpsdk.Meta{executionKey: record(&shown, false)}
	return out
}

// The first versions that have these blocks: clients of older ones throw away
// the result that holds one.
const (
	audioSince = "2025-03-26"
	linkSince  = "2025-06-18"
)

// content are the blocks that the model reads, the same as everywhere; text for
// what the client's version has not.
func content(r *supervisor.Result, version string) []mcpsdk.Content {
	list := []mcpsdk.Content{} // null is none in MCP
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

// record is the result as JSON, without bytes that a content block has, and
// without content where that is beside it or too much.
func record(r *supervisor.Result, content bool) json.RawMessage {
	own := *r
	own.Content = []supervisor.Content{}
	if content {
		for _, c := range r.Content {
			c.Data = nil
			own.Content = append(own.Content, c)
		}
	}
	raw, err := json.Marshal(own)
	if err == nil && len(raw) <= maxRecordBytes {
		return raw
	}
	own.Content, own.Structured = []supervisor.Content{}, nil
	for _, s := range []*supervisor.StreamOutput{&own.Output.Stdout, &own.Output.Stderr} {
		s.Head, s.Tail = "", ""
	}
	own.Warnings = append(slices.Clone(own.Warnings), "this record leaves the output out, which would make it larger than 1 MiB: the content has what is shown of it")
	if raw, err = json.Marshal(own); err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

func isJSONObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}
