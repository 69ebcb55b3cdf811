package mcpserver

import (
	"encoding/json"
	"maps"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// maxWrittenBytes bounds a client's text that is kept as it was written; of a longer one
// the SDK's reading is used.
const maxWrittenBytes = 1 << 20

// keepWritten puts, into the _meta of what the SDK would read with a loss (numbers as
// floats, no fields that it does not know), the text of it: of a request's own _meta, of
// the answers that it brings, and of the answer that the message is.
func keepWritten(fields map[string]json.RawMessage, params object.Fields) (changed bool) {
	if result, answers := fields["result"]; answers {
		fields["result"], changed = withText(result, result)
		return changed
	}
	params = maps.Clone(params) // as they were written, they are still to be checked
	if meta := params["_meta"]; len(meta) <= maxWrittenBytes && ownMeta(object.Of(meta)) != nil {
		params["_meta"], changed = object.With(meta, verbatim.Key, string(meta)), true
	}
	if responses := object.Of(params["inputResponses"]); len(responses) > 0 {
		for key, one := range responses {
			responses[key], _ = withText(one, one)
		}
		params["inputResponses"], _ = json.Marshal(responses) // of JSON
		changed = true
	}
	if changed {
		fields["params"], _ = json.Marshal(params) // of JSON
	}
	return changed
}

// withText is an object that has a text in its _meta.
func withText(raw, text json.RawMessage) (json.RawMessage, bool) {
	fields := object.Of(raw)
	if fields == nil || len(text) > maxWrittenBytes {
		return raw, false
	}
	fields["_meta"] = object.With(fields["_meta"], verbatim.Key, string(text))
	raw, _ = json.Marshal(fields) // of JSON
	return raw, true
}

// ownMeta is a request's _meta without what is the protocol's; nil if nothing is left.
func ownMeta[M ~map[string]V, V any](meta M) M {
	own := M{}
	for key, value := range meta {
		if key != "progressToken" && key != verbatim.Key && !strings.HasPrefix(key, "io.modelcontextprotocol/") {
			own[key] = value
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own
}

// writtenIn is the text that keepWritten has put into a _meta; nil without one.
func writtenIn(meta map[string]any) json.RawMessage {
	text, _ := meta[verbatim.Key].(string)
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// writtenAnswer is a client's answer as it has written it.
func writtenAnswer(given mcpsdk.InputResponse) (json.RawMessage, error) {
	if one, ok := given.(interface{ GetMeta() map[string]any }); ok {
		if raw := writtenIn(one.GetMeta()); raw != nil {
			return raw, nil
		}
	}
	return json.Marshal(given)
}
