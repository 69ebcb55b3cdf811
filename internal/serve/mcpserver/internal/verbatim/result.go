package verbatim

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// Key has, in a _meta, the text or the fields that take the place of the SDK's reading, until
// all others have seen that. Neither servers nor clients see it.
const Key = "dev.toolhost/exact"

// reservedFields are the fields of a result that toolhost writes itself.
var reservedFields = []string{"_meta", "resultType", "ttlMs", "cacheScope", "inputRequests", "requestState", "isError"}

// Keep has these fields of a result written as they are.
func Keep(result mcpsdk.Result, fields object.Fields) {
	meta := result.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta[Key] = fields.Without(reservedFields...)
	result.SetMeta(meta)
}

// Entries give the further fields of what is listed, as its server has written them.
type Entries struct {
	Tool     func(*mcpsdk.Tool) object.Fields
	Prompt   func(*mcpsdk.Prompt) object.Fields
	Resource func(*mcpsdk.Resource) object.Fields
	Template func(*mcpsdk.ResourceTemplate) object.Fields
}

// take takes out what Keep has put in.
func take(result mcpsdk.Result) object.Fields {
	switch result.(type) {
	case *mcpsdk.CallToolResult, *mcpsdk.GetPromptResult, *mcpsdk.ReadResourceResult, *mcpsdk.CompleteResult:
	default:
		return nil // some of the SDK's have no _meta
	}
	fields, _ := result.GetMeta()[Key].(object.Fields)
	delete(result.GetMeta(), Key)
	return fields
}

// Result is a result that is written with the fields that were kept, a list with its entries
// as their servers have written them. The SDK has more to say, to its own types.
func Result(result mcpsdk.Result, of Entries) mcpsdk.Result {
	fields := take(result)
	switch own := result.(type) {
	case *mcpsdk.ListToolsResult:
		return &writtenTools{own, entries("tools", own.Tools, of.Tool)}
	case *mcpsdk.ListPromptsResult:
		return &writtenPrompts{own, entries("prompts", own.Prompts, of.Prompt)}
	case *mcpsdk.ListResourcesResult:
		return &writtenResources{own, entries("resources", own.Resources, of.Resource)}
	case *mcpsdk.ListResourceTemplatesResult:
		return &writtenTemplates{own, entries("resourceTemplates", own.ResourceTemplates, of.Template)}
	}
	if len(fields) == 0 {
		return result
	}
	switch own := result.(type) {
	case *mcpsdk.CallToolResult:
		return &writtenCall{own, fields}
	case *mcpsdk.GetPromptResult:
		return &writtenPrompt{own, fields}
	case *mcpsdk.ReadResourceResult:
		return &writtenResource{own, fields}
	case *mcpsdk.CompleteResult:
		return &writtenCompletion{own, fields}
	}
	return result
}

// Uncached is a result without hints to caches.
func Uncached(result mcpsdk.Result) mcpsdk.Result {
	if _, has := result.(mcpsdk.CacheableResult); has {
		return uncached{result}
	}
	return result
}

type uncached struct{ mcpsdk.Result }

func (u uncached) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(u.Result)
	return object.Edited(raw, func(name string, value json.RawMessage) json.RawMessage {
		if name == "ttlMs" || name == "cacheScope" {
			return nil
		}
		return value
	}), err
}

// entries is a list of entries, each with further fields; nil if none has any.
func entries[T any](name string, list []T, fieldsOf func(T) object.Fields) object.Fields {
	further, some := make([]object.Fields, len(list)), false
	for i, one := range list {
		further[i] = fieldsOf(one)
		some = some || len(further[i]) > 0
	}
	if !some {
		return nil
	}
	all := make([]json.RawMessage, len(list))
	for i, one := range list {
		raw, err := further[i].Over(one)
		if err != nil {
			return nil
		}
		all[i] = raw
	}
	raw, _ := json.Marshal(all) // of JSON
	return object.Fields{name: raw}
}

type (
	writtenTools struct {
		*mcpsdk.ListToolsResult
		fields object.Fields
	}
	writtenPrompts struct {
		*mcpsdk.ListPromptsResult
		fields object.Fields
	}
	writtenResources struct {
		*mcpsdk.ListResourcesResult
		fields object.Fields
	}
	writtenTemplates struct {
		*mcpsdk.ListResourceTemplatesResult
		fields object.Fields
	}
	writtenCall struct {
		*mcpsdk.CallToolResult
		fields object.Fields
	}
	writtenPrompt struct {
		*mcpsdk.GetPromptResult
		fields object.Fields
	}
	writtenResource struct {
		*mcpsdk.ReadResourceResult
		fields object.Fields
	}
	writtenCompletion struct {
		*mcpsdk.CompleteResult
		fields object.Fields
	}
)

func (e *writtenTools) MarshalJSON() ([]byte, error)   { return e.fields.Over(e.ListToolsResult) }
func (e *writtenPrompts) MarshalJSON() ([]byte, error) { return e.fields.Over(e.ListPromptsResult) }

func (e *writtenResources) MarshalJSON() ([]byte, error) { return e.fields.Over(e.ListResourcesResult) }

func (e *writtenTemplates) MarshalJSON() ([]byte, error) {
	return e.fields.Over(e.ListResourceTemplatesResult)
}
func (e *writtenCall) MarshalJSON() ([]byte, error)   { return e.fields.Over(e.CallToolResult) }
func (e *writtenPrompt) MarshalJSON() ([]byte, error) { return e.fields.Over(e.GetPromptResult) }

func (e *writtenResource) MarshalJSON() ([]byte, error)   { return e.fields.Over(e.ReadResourceResult) }
func (e *writtenCompletion) MarshalJSON() ([]byte, error) { return e.fields.Over(e.CompleteResult) }
