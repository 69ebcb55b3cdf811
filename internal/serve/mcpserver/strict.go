package mcpserver

import (
	"encoding/json"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// strictSchema is a schema without properties or required that are null.
func strictSchema(schema json.RawMessage) json.RawMessage {
	return object.Edited(schema, func(name string, value json.RawMessage) json.RawMessage {
		if string(value) == "null" && (name == "properties" || name == "required") {
			return nil
		}
		return value
	})
}
