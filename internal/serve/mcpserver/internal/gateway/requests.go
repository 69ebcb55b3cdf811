package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// asCall is another request of a client as the call that it becomes.
func asCall[P mcpsdk.Params](r *mcpsdk.ServerRequest[P], p mcpsdk.CallToolParamsRaw) *mcpsdk.CallToolRequest {
	return &mcpsdk.CallToolRequest{Session: r.Session, Extra: r.Extra, Params: &p}
}

// answer is what comes of a request to a wrapped server: a result, or what is asked for.
type answer struct {
	result *api.Result
	asks   *verbatim.Inputs
}

// request makes a supervised call of a request to a wrapped server.
func (g *Gateway) request(ctx context.Context, like *mcpsdk.CallToolRequest, entry, method string, params any) (answer, error) {
	mayAsk := method == catalog.GetPrompt || method == catalog.ReadResource // the protocol has no such answer to others
	raw, err := json.Marshal(params)
	if err != nil {
		return answer{}, fmt.Errorf("bug: parameters cannot be written: %w", err)
	}
	own := *like.Params
	own.Name, own.Arguments = catalog.RequestName(entry, method), raw
	like.Params = &own
	result, asks, err := g.host.Call(ctx, like, mayAsk)
	if err != nil || asks != nil {
		return answer{result, asks}, err
	}
	if err = g.Failure(ctx, like, entry, result); err == nil && !result.OK() {
		err = g.failed(result)
	}
	return answer{result, nil}, err
}

// failed is the error that a request without a result is answered with; the receipt
// is its data.
func (g *Gateway) failed(r *api.Result) error {
	data, _ := json.Marshal(map[string]json.RawMessage{verbatim.ReceiptKey: g.host.Receipt(r)})
	code := int64(jsonrpc.CodeInternalError)
	if r.Status == api.StatusInvalidArgs {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: r.Message, Data: data}
}

func (g *Gateway) getPrompt(ctx context.Context, r *mcpsdk.GetPromptRequest) (*mcpsdk.GetPromptResult, error) {
	p := r.Params
	offer := g.promptFor(ctx, p.Name, catalog.GetPrompt)
	if offer.Entry == "" {
		return nil, unknownPrompt(p.Name)
	}
	params := map[string]any{"name": offer.Own}
	if p.Arguments != nil {
		params["arguments"] = p.Arguments
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: p.Meta, InputResponses: p.InputResponses, RequestState: p.RequestState})
	a, err := g.request(ctx, like, offer.Entry, catalog.GetPrompt, params)
	if err != nil {
		return nil, err
	}
	if a.asks != nil {
		out := &mcpsdk.GetPromptResult{InputRequests: a.asks.Requests, RequestState: a.asks.State}
		return out, a.asks.In(out)
	}
	var read struct {
		Description string     `json:"description"`
		Messages    []struct{} `json:"messages"` // the SDK may not be able to read what they have
	}
	if err := decodeAnswer(a.result, "messages", &read); err != nil {
		return nil, fmt.Errorf("the server's prompt cannot be read: %w", err)
	}
	out := &mcpsdk.GetPromptResult{Description: read.Description}
	out.Meta = verbatim.ServerMeta(a.result.Structured)
	renamedMeta(out.Meta, g.linksOf(offer.Entry))
	fields := object.Of(a.result.Structured)
	fields["messages"] = g.renamedMessages(offer.Entry, fields["messages"])
	verbatim.Keep(out, fields)
	return out, nil
}

// decodeAnswer reads a server's answer, which is one only with this field.
func decodeAnswer(r *api.Result, field string, into any) error {
	if object.Of(r.Structured)[field] == nil {
		return errors.New("it has no " + field + why(r.Warnings))
	}
	return object.Worded(json.Unmarshal(r.Structured, into))
}

// why are warnings as the end of an error.
func why(warnings []string) string {
	if len(warnings) == 0 {
		return ""
	}
	return ": " + strings.Join(warnings, "; ")
}

// renamedMessages are a prompt's messages with the URIs that clients know.
func (o *offers) renamedMessages(entry string, messages json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if _ = json.Unmarshal(messages, &list); list == nil { // of a server that has none, and writes null
		return json.RawMessage("[]")
	}
	if rename := o.linksOf(entry); rename != nil {
		for i, one := range list {
			list[i] = object.Edited(one, func(name string, value json.RawMessage) json.RawMessage {
				if name == "content" {
					return renamedContent(value, rename)
				}
				return value
			})
		}
	}
	raw, _ := json.Marshal(list) // of what was decoded from JSON
	return raw
}

// promptOf is the prompt that clients know by a name; its Entry is empty if no
// prompt has the name.
func (o *offers) promptOf(name string) directory.Prompt {
	return o.listing().Prompts[name]
}

// promptFor is promptOf for the sender of a request of the method. There is no prompt to
// them that is kept from them.
func (o *offers) promptFor(ctx context.Context, name, method string) directory.Prompt {
	offer := o.promptOf(name)
	if !o.host.Identity(ctx).MayUse(catalog.RequestName(offer.Entry, method)) {
		return directory.Prompt{}
	}
	return offer
}

// unknownPrompt is the SDK's answer to a name that no prompt has.
func unknownPrompt(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
}

// linksOf is how an entry's URIs are written for clients; nil for one of no server.
func (o *offers) linksOf(entry string) func(string) string { return o.known().Links(entry) }

// ownerFor resolves a client's URI to the entry whose server has it, and to that server's own
// URI. Servers whose resources are kept from them are as if they were not there.
func (o *offers) ownerFor(ctx context.Context, uri string) (entry, own string, err error) {
	server, own := o.usedBy(o.host.Identity(ctx)).Owner(uri)
	if server == nil {
		return "", "", noResource(uri)
	}
	return server.Entry.Name, own, nil
}

func (g *Gateway) readResource(ctx context.Context, r *mcpsdk.ReadResourceRequest) (*mcpsdk.ReadResourceResult, error) {
	p := r.Params
	asked := requestedURI(p.URI)
	entry, own, err := g.ownerFor(ctx, asked)
	if err != nil {
		return nil, notFound(err, asked, r.ProtocolVersion())
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: p.Meta, InputResponses: p.InputResponses, RequestState: p.RequestState})
	a, err := g.request(ctx, like, entry, catalog.ReadResource, map[string]any{"uri": own})
	if err != nil {
		return nil, notFound(err, asked, r.ProtocolVersion())
	}
	if a.asks != nil {
		out := &mcpsdk.ReadResourceResult{InputRequests: a.asks.Requests, RequestState: a.asks.State}
		return out, a.asks.In(out)
	}
	out := &mcpsdk.ReadResourceResult{}
	if raw := a.result.Structured; len(raw) > 0 { // else nothing that it has beside its contents has fitted
		if err := json.Unmarshal(raw, out); err != nil {
			return nil, fmt.Errorf("the server's resource cannot be read: %w", object.Worded(err))
		}
	}
	out.Meta = verbatim.ServerMeta(a.result.Structured)
	renamedMeta(out.Meta, g.linksOf(entry))
	contents := []json.RawMessage{}
	for _, c := range a.result.Content {
		contents = append(contents, g.contentsOf(entry, asked, c))
	}
	fields := object.Of(a.result.Structured)
	if fields["contents"], err = json.Marshal(contents); err != nil {
		return nil, fmt.Errorf("bug: a resource cannot be written: %w", err)
	}
	out.Contents = []*mcpsdk.ResourceContents{}
	verbatim.Keep(out, fields)
	return out, nil
}

// contentsOf is a part of a resource. A text stands where the call's limit on output
// has left something out.
func (o *offers) contentsOf(entry, asked string, c api.Content) json.RawMessage {
	if c.Type != "resource" {
		raw, _ := json.Marshal(map[string]any{"uri": asked, "mimeType": "text/plain", "text": c.Text, "_meta": map[string]any{truncatedKey: true}})
		return raw
	}
	if rename := o.linksOf(entry); rename != nil {
		c.URI, c.Extra = rename(c.URI), renamedParts(c.Extra, rename)
	}
	raw, _ := json.Marshal(verbatim.BlockFields(c)["resource"]) // of texts, bytes, and what was decoded from JSON
	return raw
}

// truncatedKey marks what stands where a part of a resource is left out.
const truncatedKey = "dev.toolhost/truncated"

// noResource is the answer to a URI that nothing has. The SDK's own has data that is not
// JSON where the URI has characters that Go quotes in a way of its own.
func noResource(uri string) error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // text always can be
	return &jsonrpc.Error{Code: codeNoResource, Message: "Resource not found", Data: data}
}

// notFound gives the code of a missing resource that the client's version has: a
// server may speak another one. By the code alone it is told what is missing: since
// 2026-07-28 that is invalid parameters, with the URI in the data.
func notFound(err error, uri, version string) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != codeNoResource && !namesResource(e) {
		return err
	}
	own := *e
	if own.Data == nil {
		own.Data, _ = json.Marshal(map[string]string{"uri": uri}) // text always can be
	}
	own.Code = codeNoResource
	if version >= MultiRound {
		own.Code = jsonrpc.CodeInvalidParams
	}
	return &own
}

// namesResource says whether an error of invalid parameters is about the URI that it
// has in its data: a read has no other parameter.
func namesResource(e *jsonrpc.Error) bool {
	var data struct {
		URI string `json:"uri"`
	}
	return e.Code == jsonrpc.CodeInvalidParams && json.Unmarshal(e.Data, &data) == nil && data.URI != ""
}

// codeNoResource is that of a resource that is not there, before 2026-07-28.
const codeNoResource = -32002

func (g *Gateway) complete(ctx context.Context, r *mcpsdk.CompleteRequest) (*mcpsdk.CompleteResult, error) {
	p := r.Params
	if p.Ref == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "ref is missing: name a prompt or a resource template"}
	}
	entry, ref := "", *p.Ref
	offer := g.promptFor(ctx, ref.Name, catalog.Complete)
	switch {
	case ref.Type == "ref/prompt" && offer.Entry != "":
		entry, ref.Name = offer.Entry, offer.Own
	case ref.Type == "ref/prompt":
		return nil, unknownPrompt(ref.Name)
	default:
		var err error
		if entry, ref.URI, err = g.ownerFor(ctx, ref.URI); err != nil {
			return nil, notFound(err, p.Ref.URI, MultiRound) // a wrong ref is a wrong parameter in each version
		}
	}
	params := map[string]any{"ref": ref, "argument": p.Argument}
	if p.Context != nil {
		params["context"] = p.Context
	}
	like := asCall(r, mcpsdk.CallToolParamsRaw{Meta: p.Meta})
	a, err := g.request(ctx, like, entry, catalog.Complete, params)
	if err != nil {
		return nil, err
	}
	var read struct {
		Completion struct {
			Values []string `json:"values"`
		} `json:"completion"` // its total may be no int, which the SDK wants
	}
	if err := decodeAnswer(a.result, "completion", &read); err != nil {
		return nil, fmt.Errorf("the server's completion cannot be read: %w", err)
	}
	out := &mcpsdk.CompleteResult{}
	out.Meta = verbatim.ServerMeta(a.result.Structured)
	fields := object.Of(a.result.Structured)
	if read.Completion.Values == nil { // which some write as null
		fields["completion"] = object.With(fields["completion"], "values", []string{})
	}
	verbatim.Keep(out, fields)
	return out, nil
}
