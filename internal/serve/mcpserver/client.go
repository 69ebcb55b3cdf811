package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// clientFor is what the adapter of a wrapped server gets to know about a call's client. A
// server would use the extensions that it declares.
func (s *Server) clientFor(r *mcpsdk.CallToolRequest, caps *mcpsdk.ClientCapabilities) json.RawMessage {
	own := mcpsdk.ClientCapabilities{}
	if caps != nil {
		own = *caps
	}
	if s.config.Headless {
		own.Elicitation = nil
	}
	own.Extensions = maps.Clone(own.Extensions)
	maps.DeleteFunc(own.Extensions, func(name string, _ any) bool { return !gateway.PassesOn(name) })
	raw, err := json.Marshal(&own)
	if err != nil {
		return nil
	}
	c := mcpcall.Client{Protocol: r.ProtocolVersion(), Capabilities: raw, LogLevel: s.levelOf(r)}
	if len(r.Params.InputResponses) > 0 {
		all := object.Fields{}
		for key, one := range r.Params.InputResponses {
			all[key], _ = writtenAnswer(one) // of what the SDK has read
		}
		c.InputResponses, _ = json.Marshal(all)
	}
	return c.JSON()
}

// levelOf is the level that a client wants a server's messages from; empty if it has
// said none.
func (s *Server) levelOf(r *mcpsdk.CallToolRequest) string {
	if level, ok := r.Params.Meta[mcpsdk.MetaKeyLogLevel].(string); ok {
		return level
	}
	return s.knownOf(r.Session).level
}

// knowLevel remembers the level that a session sets.
func (s *Server) knowLevel(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		result, err := next(ctx, method, r)
		if p, ok := r.GetParams().(*mcpsdk.SetLoggingLevelParams); ok && err == nil {
			s.about(r.GetSession().(*mcpsdk.ServerSession), func(k *known) { k.level = string(p.Level) })
		}
		return result, err
	}
}

// askClient puts a wrapped server's own request to the client, as it is.
func (c *call) askClient(ctx context.Context, i api.Interaction) (api.Answer, error) {
	params, err := c.paramsOf(i)
	if err != nil {
		c.arrived(i)
		if i.Kind != api.KindRoots { // the server gets those that are granted instead
			c.note(err.Error())
		}
		return api.Answer{By: c.by(), Unanswered: unasked(i, err)}, nil
	}
	f := form{plain: len(i.Schema) == 0}
	given, err := c.elicit(ctx, i, params, f)
	if ctx.Err() != nil {
		return api.Answer{}, ctx.Err()
	}
	if err != nil {
		c.note(whyNot(err, "the client did not answer "+i.Request.Method+": "))
		return api.Answer{By: c.by(), Unanswered: api.OutcomeFailed, Refusal: refusalOf(err)}, nil
	}
	if !i.Kind.OfClient() {
		a := f.answer(given.(*mcpsdk.ElicitResult)) // another one does not fit
		a.By, a.Meta = c.by(), metaOfAnswer(given)
		return a, nil
	}
	raw, err := writtenAnswer(given)
	if err != nil {
		return api.Answer{By: c.by(), Unanswered: api.OutcomeFailed}, nil
	}
	return api.Answer{By: c.by(), Approve: true, Value: raw}, nil
}

// unasked is the outcome of a question that is not put to the client.
func unasked(i api.Interaction, err error) string {
	if _, is := errors.AsType[*missingError](err); is && !i.Kind.OfClient() {
		return api.OutcomeHeadless
	}
	return api.OutcomeFailed
}

// maxAnswerMetaBytes bounds what a client may say beside its answer, as an answer is bounded.
const maxAnswerMetaBytes = 64 << 10

// metaOfAnswer is what a client has said beside its answer; nil if nothing, or too much.
func metaOfAnswer(given mcpsdk.InputResponse) json.RawMessage {
	raw, _ := writtenAnswer(given) // of what the SDK has read
	meta := object.Of(raw)["_meta"]
	if len(meta) > maxAnswerMetaBytes || len(object.Of(meta)) == 0 {
		return nil
	}
	return meta
}

// refusalOf is the error that a client has answered with; nil if err is another one.
func refusalOf(err error) json.RawMessage {
	e, is := errors.AsType[*jsonrpc.Error](err)
	if !is {
		return nil
	}
	raw, _ := json.Marshal(e) // which was read from JSON
	return raw
}

// paramsOf are a request's, if the client takes such requests.
func (c *call) paramsOf(i api.Interaction) (params mcpsdk.InputRequest, err error) {
	caps := cmp.Or(c.caps, &mcpsdk.ClientCapabilities{})
	raw := i.Request.Params
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	switch i.Kind {
	case api.KindSampling:
		if caps.Sampling == nil {
			return nil, missing("its model (sampling)")
		}
		if err := fits[mcpsdk.CreateMessageWithToolsParams]("params", raw); err != nil {
			return nil, fmt.Errorf("the tool's server asked the client for its model (sampling), and %w", err)
		}
		p := &mcpsdk.CreateMessageWithToolsParams{}
		if err := json.Unmarshal(raw, p); err != nil {
			return nil, err
		}
		if caps.Sampling.Tools == nil && (p.Tools != nil || p.ToolChoice != nil) {
			return nil, missing("tools for its model (sampling.tools)")
		}
		p.Meta = mcpsdk.Meta{verbatim.Key: raw}
		return p, nil
	case api.KindRoots:
		if caps.RootsV2 == nil && !caps.Roots.ListChanged {
			return nil, missing("its folders (roots)")
		}
		if by := c.session.sdk; by != nil { // who has no session announces nothing
			c.s.gateway.AskedRoots(c.origin(), by, c.session.peer.Identity)
		}
		p := &mcpsdk.ListRootsParams{}
		return p, json.Unmarshal(raw, p)
	}
	return elicitation(i, raw, caps)
}

// missingError is for what a client does not declare.
type missingError struct{ what string }

func missing(what string) error { return &missingError{what} }

func (e *missingError) Error() string {
	return "the tool's server asked the client for " + e.what + ", which it does not declare"
}

// elicitation is a request for a human's answer.
func elicitation(i api.Interaction, raw json.RawMessage, caps *mcpsdk.ClientCapabilities) (mcpsdk.InputRequest, error) {
	p := &mcpsdk.ElicitParams{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, err
	}
	if form := object.Of(raw)["requestedSchema"]; p.RequestedSchema != nil { // its order is that of the form's fields
		p.RequestedSchema = form
	}
	switch {
	case p.Mode == "url" && !canOpen(caps):
		return nil, missing("a human who opens an address (elicitation.url)")
	case p.Mode != "url" && !canAsk(caps):
		return nil, missing("a human's answer (elicitation)")
	case p.Mode == "url" && p.URL == "":
		return nil, errors.New("the tool's server wants an address opened and names none")
	case p.Mode == "url": // the client takes toolhost for the server
		p.Message = i.Request.Server + ": " + p.Message
	}
	return p, nil
}

// withID is a request to open an address with an id, which servers of 2026-07-28 have none
// of and clients of before demand.
func withID(p *mcpsdk.ElicitParams) *mcpsdk.ElicitParams {
	if p.Mode != "url" || p.ElicitationID != "" {
		return p
	}
	own := *p
	own.ElicitationID = rand.Text()
	return &own
}
