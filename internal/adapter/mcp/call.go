package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/plugin"
)

// progressTime is how long a call that was told to end may take before its last
// progress becomes its partial result.
const progressTime = 100 * time.Millisecond

// call is one call of a tool of the server.
type call struct {
	ctx      context.Context // ends at the deadline, on cancel, on SIGTERM
	out      *plugin.Output
	token    string // for progress
	exchange exchange
	asking   chan struct{} // held while a question waits: hosts take few at once

	mu    sync.Mutex
	last  string // progress
	shown bool   // as content
}

type callKey struct{}

// call calls a tool by its own name. asked is false where the server was gone
// before it could be asked, so that nothing has happened.
func (s *session) call(ctx context.Context, tool string, arguments json.RawMessage, out *plugin.Output) (structured json.RawMessage, asked bool, err error) {
	c := &call{ctx: ctx, out: out, asking: make(chan struct{}, 1)}
	s.wire.begin(c)
	defer s.wire.end(c)
	// The SDK would drop the answer if ctx ended: it gets one that ends with
	// this function.
	request, stop := context.WithCancel(withExchange(context.WithValue(context.WithoutCancel(ctx), callKey{}, c), &c.exchange))
	defer stop()
	answered := make(chan error, 1)
	go func() {
		_, err := s.client.CallTool(request, callParams(tool, arguments, c.token))
		answered <- err
	}()
	select {
	case err = <-answered:
	case <-ctx.Done():
		err = s.cancelled(c, answered)
	}
	answer, asked := s.wire.result(&c.exchange)
	if answer == nil {
		return nil, asked, s.unanswered(c, err)
	}
	structured, err = s.outcome(c, answer, err)
	return structured, true, err
}

var errNoAnswer = errors.New("the MCP server has not answered")

// cancelled tells the server that the call's time is over and waits for what it
// still answers. What it was doing last is shown if it takes its time, since
// this process may not live to tell later.
func (s *session) cancelled(c *call, answered <-chan error) error {
	go s.wire.cancel(&c.exchange, context.Cause(c.ctx).Error())
	select {
	case err := <-answered:
		return err
	case <-time.After(progressTime):
	}
	c.showProgress()
	select {
	case err := <-answered:
		return err
	case <-time.After(maxCancelTime):
		return errNoAnswer
	}
}

// unanswered is why there is no answer: the call's own end comes before that of
// the server, which is mostly its consequence.
func (s *session) unanswered(c *call, err error) error {
	if c.ctx.Err() == nil {
		return s.endedWhy(c.ctx)
	}
	c.showProgress()
	return fmt.Errorf("%w; MCP server %q has not answered (%s)", context.Cause(c.ctx), s.options.Name, cut(err.Error(), maxNoteBytes))
}

// outcome is what the server's answer comes to; err is the SDK's word on it.
func (s *session) outcome(c *call, answer *jsonrpc.Response, err error) (json.RawMessage, error) {
	if wrong, ok := malformed(answer.Error); ok {
		return nil, s.failure(plugin.BrokeProtocol, "answered tools/call in a form that MCP does not have: "+wrong.Message, wrong)
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](answer.Error); ok {
		return nil, s.refused(c, refused)
	}
	r, broken := decodeResult(answer.Result)
	switch {
	case broken != nil:
		return nil, s.failure(plugin.BrokeProtocol, "answered tools/call in a form that MCP does not have: "+broken.Error(), broken)
	case r.ResultType == "input_required" && err != nil:
		return nil, fmt.Errorf("MCP server %q asked for what it cannot get: %w", s.options.Name, err)
	}
	return r.deliver(c.out)
}

// refused is an error that the server answered with instead of a result.
func (s *session) refused(c *call, e *jsonrpc.Error) error {
	text := textOf(e)
	if c.ctx.Err() != nil {
		c.showProgress()
		return fmt.Errorf("%w; MCP server %q: %s", context.Cause(c.ctx), s.options.Name, text)
	}
	if e.Code == jsonrpc.CodeInvalidParams {
		return &plugin.InvalidArgumentsError{Err: fmt.Errorf("MCP server %q: %s", s.options.Name, text)}
	}
	return fmt.Errorf("MCP server %q: %s (code %d)", s.options.Name, text, e.Code)
}
