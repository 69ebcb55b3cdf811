package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// exactContent is a block that is written as its server has written it: the SDK has no
// place for fields that it does not know, and reads numbers as floats.
type exactContent struct {
	mcpsdk.Content
	raw json.RawMessage
}

func (c exactContent) MarshalJSON() ([]byte, error) { return c.raw, nil }

// exactSampling is a request for the client's model that is written so. The text comes in
// its _meta, behind exactKey, to where it is sent.
type exactSampling struct {
	*mcpsdk.CreateMessageWithToolsParams
	raw json.RawMessage
}

func (s *exactSampling) MarshalJSON() ([]byte, error) { return s.raw, nil }

// exactKey has, in the _meta of a result, the fields that are written as its server has
// written them, until all others have seen the result.
const exactKey = "dev.toolhost/exact"

// notTheirs are the fields of a result that are for toolhost to say.
var notTheirs = []string{"_meta", "resultType", "ttlMs", "cacheScope", "inputRequests", "requestState", "isError"}

// keepExact has a result's fields written so.
func keepExact(result mcpsdk.Result, fields object.Fields) {
	meta := result.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta[exactKey] = fields.Without(notTheirs...)
	result.SetMeta(meta)
}

// exact comes last to a result.
func (s *Server) exact(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		result, err := next(ctx, method, r)
		if err != nil || result == nil {
			return result, coded(ofCursor(method, r, err))
		}
		return s.written(result, takeExact(result)), nil
	}
}

// coded is an error with a code of JSON-RPC: any other would be written with code 0.
func coded(err error) error {
	e, has := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return nil
	case !has:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	case e.Code == jsonrpc.CodeMethodNotFound:
		return ownWords{err, e}
	}
	return err
}

// ownWords is an error that the SDK would otherwise put words of its own in place of, for
// its code. Where the SDK writes it, that is over HTTP, it has no data.
type ownWords struct {
	error
	coded *jsonrpc.Error
}

func (o ownWords) As(target any) bool {
	to, is := target.(**jsonrpc.Error)
	if is {
		*to = o.coded
	}
	return is
}

// whole is an answer with such an error as it is.
func whole(r *jsonrpc.Response) *jsonrpc.Response {
	own, is := r.Error.(ownWords) //nolint:errorlint // exact, which comes last, wraps it in nothing
	if !is {
		return r
	}
	e := *own.coded
	e.Message = own.Error()
	return &jsonrpc.Response{ID: r.ID, Error: &e}
}

// ofCursor is the error of a list whose cursor nobody was given: the SDK's names nothing.
func ofCursor(method string, r mcpsdk.Request, err error) error {
	e, is := errors.AsType[*jsonrpc.Error](err)
	if !is || e.Code != jsonrpc.CodeInvalidParams || !strings.HasSuffix(method, "/list") {
		return err
	}
	raw, _ := json.Marshal(r.GetParams()) // of what was decoded from JSON
	cursor := object.Text(raw, "cursor")
	if cursor == "" {
		return err
	}
	return &jsonrpc.Error{Code: e.Code, Message: fmt.Sprintf("unknown cursor %q: use the nextCursor of an answer, or leave it out to begin", cut(cursor, maxShownBytes))}
}

func takeExact(result mcpsdk.Result) object.Fields {
	switch result.(type) {
	case *mcpsdk.CallToolResult, *mcpsdk.GetPromptResult, *mcpsdk.ReadResourceResult, *mcpsdk.CompleteResult:
	default:
		return nil // some of the SDK's have no _meta
	}
	fields, _ := result.GetMeta()[exactKey].(object.Fields)
	delete(result.GetMeta(), exactKey)
	return fields
}

// written is a result that is written with these fields, a list with its entries as their
// servers have written them. The SDK has more to say, to its own types.
func (s *Server) written(result mcpsdk.Result, fields object.Fields) mcpsdk.Result {
	switch own := result.(type) {
	case *mcpsdk.ListToolsResult:
		return &exactTools{own, entries("tools", own.Tools, s.extraOf)}
	case *mcpsdk.ListPromptsResult:
		return &exactPrompts{own, entries("prompts", own.Prompts, s.gateway.promptFields)}
	case *mcpsdk.ListResourcesResult:
		return &exactResources{own, entries("resources", own.Resources, s.gateway.resourceFields)}
	case *mcpsdk.ListResourceTemplatesResult:
		return &exactTemplates{own, entries("resourceTemplates", own.ResourceTemplates, s.gateway.templateFields)}
	}
	if len(fields) == 0 {
		return result
	}
	switch own := result.(type) {
	case *mcpsdk.CallToolResult:
		return &exactCall{own, fields}
	case *mcpsdk.GetPromptResult:
		return &exactPrompt{own, fields}
	case *mcpsdk.ReadResourceResult:
		return &exactResource{own, fields}
	case *mcpsdk.CompleteResult:
		return &exactCompletion{own, fields}
	}
	return result
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

func (s *Server) extraOf(t *mcpsdk.Tool) object.Fields { return s.offerOf(t.Name).extra }

func (g *gateway) promptFields(p *mcpsdk.Prompt) object.Fields {
	return object.Of([]byte(g.promptOf(p.Name).Raw))
}

func (g *gateway) resourceFields(r *mcpsdk.Resource) object.Fields {
	g.mu.Lock()
	defer g.mu.Unlock()
	return object.Of([]byte(g.listed.Resources[r.URI]))
}

func (g *gateway) templateFields(t *mcpsdk.ResourceTemplate) object.Fields {
	g.mu.Lock()
	defer g.mu.Unlock()
	return object.Of([]byte(g.listed.Templates[t.URITemplate]))
}

type (
	exactTools struct {
		*mcpsdk.ListToolsResult
		fields object.Fields
	}
	exactPrompts struct {
		*mcpsdk.ListPromptsResult
		fields object.Fields
	}
	exactResources struct {
		*mcpsdk.ListResourcesResult
		fields object.Fields
	}
	exactTemplates struct {
		*mcpsdk.ListResourceTemplatesResult
		fields object.Fields
	}
	exactCall struct {
		*mcpsdk.CallToolResult
		fields object.Fields
	}
	exactPrompt struct {
		*mcpsdk.GetPromptResult
		fields object.Fields
	}
	exactResource struct {
		*mcpsdk.ReadResourceResult
		fields object.Fields
	}
	exactCompletion struct {
		*mcpsdk.CompleteResult
		fields object.Fields
	}
)

func (e *exactTools) MarshalJSON() ([]byte, error)     { return e.fields.Over(e.ListToolsResult) }
func (e *exactPrompts) MarshalJSON() ([]byte, error)   { return e.fields.Over(e.ListPromptsResult) }
func (e *exactResources) MarshalJSON() ([]byte, error) { return e.fields.Over(e.ListResourcesResult) }

func (e *exactTemplates) MarshalJSON() ([]byte, error) {
	return e.fields.Over(e.ListResourceTemplatesResult)
}
func (e *exactCall) MarshalJSON() ([]byte, error)       { return e.fields.Over(e.CallToolResult) }
func (e *exactPrompt) MarshalJSON() ([]byte, error)     { return e.fields.Over(e.GetPromptResult) }
func (e *exactResource) MarshalJSON() ([]byte, error)   { return e.fields.Over(e.ReadResourceResult) }
func (e *exactCompletion) MarshalJSON() ([]byte, error) { return e.fields.Over(e.CompleteResult) }
