package directory

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// A strict client refuses a whole list for one entry that its protocol does not have:
// what one server has written wrongly would take away what all others offer.

// mayLack are the fields of entries that may be left out, and those of their icons,
// annotations and arguments. What the protocol does not have is passed on as it is.
var mayLack = map[string]bool{
	"title": true, "description": true, "mimeType": true, "size": true, "icons": true, "annotations": true, "arguments": true, "_meta": true,
	"sizes": true, "theme": true, "audience": true, "priority": true, "lastModified": true, "required": true, "outputSchema": true, "execution": true,
	"readOnlyHint": true, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true,
}

// withoutNulls is an entry of a list without its optional fields that are null.
func withoutNulls(value json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil && list != nil {
		for i, one := range list {
			list[i] = withoutNulls(one)
		}
		raw, _ := json.Marshal(list) // of JSON
		return raw
	}
	return object.Edited(value, func(name string, one json.RawMessage) json.RawMessage {
		switch {
		case mayLack[name] && string(one) == "null":
			return nil
		case name == "icons":
			return readable(withoutNulls(one))
		case name == "annotations", name == "arguments":
			return withoutNulls(one)
		}
		return one
	})
}

// named is a resource or template as strict clients take it; one without a name has its
// URI for that.
func named(raw json.RawMessage, uri string) json.RawMessage {
	if raw = withoutNulls(raw); object.Text(raw, "name") == "" {
		return object.With(raw, "name", uri)
	}
	return raw
}

// sized is a resource whose size, if it has one, is written as clients read it: a server may
// count in floats. One that is not a whole number is left out.
func sized(raw json.RawMessage) json.RawMessage {
	return object.Edited(raw, func(name string, value json.RawMessage) json.RawMessage {
		if name == "size" {
			return whole(value)
		}
		return value
	})
}

// whole is a number written without a fraction; nil if it has one, or is too large to have none.
func whole(value json.RawMessage) json.RawMessage {
	var number float64
	if json.Unmarshal(value, new(int64)) == nil {
		return value
	}
	if json.Unmarshal(value, &number) != nil || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
		return nil
	}
	return strconv.AppendInt(nil, int64(number), 10)
}
