package mcpserver

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// forVersionOf is a list of tools as the client's version knows them: before 2026-07-28
// an output schema is that of an object, and a property's schema is an object.
func forVersionOf(r mcpsdk.Request, result mcpsdk.Result) mcpsdk.Result {
	list, is := result.(*mcpsdk.ListToolsResult)
	asked, known := r.(*mcpsdk.ListToolsRequest)
	if !is || !known || asked.ProtocolVersion() >= multiRound {
		return result
	}
	own := *list
	own.Tools = make([]*mcpsdk.Tool, len(list.Tools))
	for i, tool := range list.Tools {
		older := *tool
		if raw, of := tool.InputSchema.(json.RawMessage); of {
			older.InputSchema = olderSchema(raw)
		}
		if raw, of := tool.OutputSchema.(json.RawMessage); of {
			older.OutputSchema = nil
			if isObject(raw) {
				older.OutputSchema = olderSchema(raw)
			}
		}
		own.Tools[i] = &older
	}
	return &own
}

// olderSchema has objects in place of true and false among a schema's properties: strict
// clients refuse the whole list of tools for one that is not an object.
func olderSchema(schema json.RawMessage) json.RawMessage {
	return object.Edited(schema, func(name string, properties json.RawMessage) json.RawMessage {
		if name != "properties" {
			return properties
		}
		return object.Edited(properties, func(_ string, property json.RawMessage) json.RawMessage {
			switch string(property) {
			case "true":
				return json.RawMessage(`{}`)
			case "false":
				return json.RawMessage(`{"not":{}}`)
			}
			return property
		})
	})
}

// uncachedFor is a result as it is written, before 2026-07-28 without hints to caches.
func uncachedFor(r mcpsdk.Request, written mcpsdk.Result) mcpsdk.Result {
	if one, has := r.(interface{ ProtocolVersion() string }); has && one.ProtocolVersion() < multiRound {
		return verbatim.Uncached(written)
	}
	return written
}
