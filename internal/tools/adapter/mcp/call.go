package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/plugin"
)

const (
	// progressTime is how long a call that was told to end may take before its last
	// progress becomes its partial result.
	progressTime = 100 * time.Millisecond
	// maxRounds bounds how often a server may ask for more before it answers.
	maxRounds = 16

	callTool = "tools/call"
)

// call is one request to the server that the host supervises: a call of a tool,
// or another one of the protocol's.
type call struct {
	ctx    context.Context // ends at the deadline, on cancel, on SIGTERM
	out    *plugin.Output
	client mcpcall.Client
	token  string                     // for progress
	asking chan struct{}              // held while a question waits: hosts take few at once
	mended int                        // bytes of the last answer that are not UTF-8
	fields map[string]json.RawMessage // of the result

	mu    sync.Mutex
	last  string // progress
	shown bool   // as content
}

// params are those of a request; _meta is added.
type params map[string]any

// call makes a request of a call's and gives the server's result. asked is false
// where the server was gone before it could be asked, so that nothing has
// happened.
func (s *session) call(ctx context.Context, method string, p params, out *plugin.Output) (c *call, result json.RawMessage, asked bool, err error) {
	c = &call{ctx: ctx, out: out, client: mcpcall.Of(plugin.ClientOf(ctx)), asking: make(chan struct{}, 1)}
	s.wire.begin(c)
	defer s.wire.end(c)
	s.levelFor(c)
	p = maps.Clone(p)
	p["_meta"] = s.metaOf(c, plugin.PlaceOf(ctx).Meta)
	if len(c.client.InputResponses) > 0 {
		p["inputResponses"] = s.options.grantedIn(c.client.InputResponses)
	}
	if c.client.RequestState != "" {
		p["requestState"] = c.client.RequestState
	}
	for round := 1; ; round++ {
		answer, asked, err := s.exchange(c, method, p)
		if err != nil {
			return c, nil, asked || round > 1, err
		}
		result, err := s.resultOf(c, method, answer)
		if err != nil {
			return c, nil, true, err
		}
		c.fields = nil
		_ = json.Unmarshal(result, &c.fields)
		more := wanted(c.fields)
		if more == nil {
			return c, result, true, nil
		}
		if wrong := more.wrong(method); wrong != "" {
			return c, nil, true, s.failure(plugin.BrokeProtocol, wrong, nil)
		}
		switch {
		case plugin.TakesRounds(ctx):
			if len(result) > maxPartBytes {
				return c, nil, true, s.failure(plugin.BrokeProtocol, "asks for more than can be passed on", nil)
			}
			out.Meta(result)
			return c, nil, true, nil
		case round == maxRounds:
			return c, nil, true, s.failure(plugin.BrokeProtocol, fmt.Sprintf("has asked for more %d times, and does not answer %s", round, method), nil)
		}
		if p["inputResponses"], err = s.gather(c, more, round); err != nil {
			return c, nil, true, err
		}
		p["requestState"] = more.RequestState
		if more.RequestState == "" {
			delete(p, "requestState")
		}
	}
}

// exchange makes one request and waits for its answer.
func (s *session) exchange(c *call, method string, p params) (answer *jsonrpc.Response, asked bool, err error) {
	e, asked, err := s.wire.roundTrip(c.ctx, method, p, func(e *exchange) { s.cancelled(c, e) })
	if err != nil {
		err = s.unanswered(c, err)
		return nil, asked && !s.wire.unread(e), err
	}
	c.mended = e.mended
	return e.answer, true, nil
}

// metaOf is what stands beside a request's parameters: what the caller gives, a
// token for progress and, in the newest protocol, who asks.
func (s *session) metaOf(c *call, given json.RawMessage) map[string]any {
	meta := map[string]any{}
	var written map[string]json.RawMessage
	_ = json.Unmarshal(given, &written)
	for key, value := range written {
		meta[key] = value
	}
	meta["progressToken"] = c.token
	if s.stateless() {
		s.introduce(meta, c.client)
	}
	return meta
}

// introduce says who asks, as each request of the newest protocol does.
func (s *session) introduce(meta map[string]any, client mcpcall.Client) {
	meta[mcpsdk.MetaKeyProtocolVersion] = s.server.ProtocolVersion
	meta[mcpsdk.MetaKeyClientInfo] = s.self()
	meta[mcpsdk.MetaKeyClientCapabilities] = capabilitiesOf(client)
	meta[metaLogLevel] = logLevelOf(client)
}

// ownMeta is what stands beside the parameters of a request that no call makes.
func (s *session) ownMeta() map[string]any {
	meta := map[string]any{}
	s.introduce(meta, clientOfHost)
	delete(meta, metaLogLevel)
	return meta
}

// cancelled tells the server that the call's time is over and waits for what it
// still answers. What it was doing last is shown if it takes its time, since
// this process may not live to tell later.
func (s *session) cancelled(c *call, e *exchange) {
	go s.wire.cancel(e, context.Cause(c.ctx).Error())
	for _, wait := range []time.Duration{progressTime, maxCancelTime} {
		select {
		case <-e.done:
			return
		case <-s.wire.over:
			return
		case <-time.After(wait):
		}
		c.showProgress()
	}
}

// unanswered is why there is no answer: the call's own end comes before that of
// the server, which is mostly its consequence.
func (s *session) unanswered(c *call, err error) error {
	c.showProgress()
	if c.ctx.Err() == nil {
		return s.endedWhy(c.ctx)
	}
	return fmt.Errorf("%w; MCP server %q has not answered (%s)", context.Cause(c.ctx), s.options.Name, text.Begin(err.Error(), maxNoteBytes))
}

// resultOf is the result that the server answered with.
func (s *session) resultOf(c *call, method string, answer *jsonrpc.Response) (json.RawMessage, error) {
	if wrong, ok := malformed(answer.Error); ok {
		c.showProgress()
		return nil, s.failure(plugin.BrokeProtocol, "answered "+method+" in a form that MCP does not have: "+wrong.Message, wrong)
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](answer.Error); ok {
		return nil, s.refused(c, refused)
	}
	return answer.Result, nil
}

// refused is an error that the server answered with instead of a result.
func (s *session) refused(c *call, e *jsonrpc.Error) error {
	text := textOf(e)
	if c.ctx.Err() != nil {
		c.showProgress()
		return fmt.Errorf("%w; MCP server %q: %s", context.Cause(c.ctx), s.options.Name, text)
	}
	err := fmt.Errorf("MCP server %q: %s (code %d)", s.options.Name, text, e.Code)
	if e.Code == jsonrpc.CodeInvalidParams {
		err = &plugin.InvalidArgumentsError{Err: fmt.Errorf("MCP server %q: %s", s.options.Name, text)}
	}
	raw, failed := json.Marshal(e)
	if failed != nil || len(raw) > maxPartBytes {
		return err
	}
	return &plugin.RPCError{Raw: raw, Err: err}
}

// callTool calls a tool by its own name.
func (s *session) callTool(ctx context.Context, tool string, arguments json.RawMessage, out *plugin.Output) (structured json.RawMessage, asked bool, err error) {
	p := params{"name": tool, "arguments": arguments}
	c, raw, asked, err := s.call(ctx, callTool, p, out)
	if err != nil || raw == nil {
		return nil, asked, err
	}
	r, broken := decodeResult(c.fields)
	if broken != nil {
		return nil, true, s.failure(plugin.BrokeProtocol, "answered tools/call in a form that MCP does not have: "+broken.Error(), broken)
	}
	r.mended = c.mended
	if structured, err = r.deliver(out, c.client.Protocol >= statelessSince); len(r.Meta) > 0 {
		out.Meta(r.Meta)
	}
	return structured, true, err
}

// maxMetaBytes bounds what a result has beside its content and its structured value.
const maxMetaBytes = 64 << 10
