package mcpserver

import (
	"encoding/json"
	"fmt"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
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
		list = append(list, forVersion(verbatim.Block(c), version))
	}
	if line := instead(r, version); line != "" {
		list = append(list, &mcpsdk.TextContent{Text: line})
	}
	if note := format.Note(r); note != "" {
		list = append(list, &mcpsdk.TextContent{Text: note})
	}
	return list
}

// instead is what stands in place of a structured value that cannot be structuredContent, if
// there is one.
func instead(r *api.Result, version string) string {
	value := ofFailure(r)
	if r.OK() {
		value = r.Structured
	}
	switch can := version >= multiRound || object.Is(value); {
	case can && len(value) > maxStructuredBytes:
		return fmt.Sprintf("[the structured result is left out: it has %d bytes, at most %d can be passed on]", len(value), maxStructuredBytes)
	case !can && len(value) > 0 && string(value) != "null":
		return string(value)
	}
	return ""
}

// forVersion is a block for what a version has; text for what it has not.
func forVersion(block mcpsdk.Content, version string) mcpsdk.Content {
	written, is := block.(verbatim.Content)
	if !is {
		return block
	}
	switch b := written.Content.(type) {
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
