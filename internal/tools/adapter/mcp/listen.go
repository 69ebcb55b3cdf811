package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// subscription is a stream of the server's for one resource.
type subscription struct {
	*exchange               // answered once the server has ended it
	id        string        // of its request, as JSON
	sent      chan struct{} // closed when the request is, or cannot be
	open      chan struct{} // closed when the server has acknowledged it
	late      *time.Timer   // stopped by that, or else ends it
	failed    chan struct{} // closed when this side has ended it unopened
	why       error         // for that; set before
	ending    bool          // since this side wants no more of it; guarded by the session's mu
	gone      chan struct{} // closed when it has ended for that
}

// listen subscribes to a resource where the protocol has a stream for that. There is one
// for all who watch the resource.
func (s *session) listen(ctx context.Context, method string, p params) (json.RawMessage, bool, error) {
	uri, _ := p["uri"].(string)
	if method == unsubscribe {
		s.unlisten(uri)
		return json.RawMessage("{}"), true, nil
	}
	one, err := s.subscription(ctx, uri)
	if err != nil {
		return nil, false, err
	}
	select {
	case <-one.open:
		return json.RawMessage("{}"), true, nil
	case <-one.failed:
		return nil, true, one.why
	case <-one.done:
		select {
		case <-one.failed: // before that
			return nil, true, one.why
		default:
		}
		if refused, ok := asError(one.answer); ok {
			return nil, true, s.refused(&call{ctx: ctx}, refused)
		}
		return nil, true, fmt.Errorf("MCP server %q has ended the subscription at once", s.options.Name)
	case <-s.wire.over:
		return nil, true, s.endedWhy(ctx)
	case <-ctx.Done():
		return nil, true, context.Cause(ctx)
	}
}

// subscription is the one to a resource, which is asked for unless it is there. A server may
// take the end of one for that of the next one, if that begins before: the end is waited for.
func (s *session) subscription(ctx context.Context, uri string) (*subscription, error) {
	for {
		one, how, err := s.subscribed(uri)
		switch {
		case err != nil:
			return nil, err
		case how == streamFresh:
			return one, s.begin(uri, one)
		case how == streamEnding:
			select {
			case <-one.gone:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		default:
			return one, nil
		}
	}
}

// begin asks for a stream.
func (s *session) begin(uri string, one *subscription) error {
	defer close(one.sent)
	err := s.stream(one.exchange, map[string]any{"resourceSubscriptions": []string{uri}})
	if err != nil {
		s.forget(uri, one)
	}
	return err
}

// streamState is where a stream is.
type streamState int

const (
	streamLasts  streamState = iota
	streamFresh              // still to be asked for
	streamEnding             // for this side wants no more of it
)

// subscribed is the subscription to a resource, which may be a fresh one.
func (s *session) subscribed(uri string) (one *subscription, is streamState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one = s.subscriptions[uri]; one != nil {
		switch ended, _ := s.wire.result(one.exchange); {
		case one.ending:
			return one, streamEnding, nil
		case ended == nil:
			return one, streamLasts, nil
		}
	}
	one = &subscription{
		exchange: newStream(), sent: make(chan struct{}), open: make(chan struct{}), failed: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := s.wire.number(one.exchange); err != nil {
		return nil, streamFresh, err
	}
	one.id = idOf(one.exchange)
	one.late = time.AfterFunc(s.options.StartTimeout, func() {
		s.fail(uri, one, fmt.Errorf("MCP server %q has not acknowledged the subscription within %s: a higher startTimeout gives it more", s.options.Name, s.options.StartTimeout))
	})
	s.subscriptions[uri] = one
	return one, streamFresh, nil
}

// unlisten ends the stream of a resource.
func (s *session) unlisten(uri string) {
	s.mu.Lock()
	one := s.subscriptions[uri]
	s.mu.Unlock()
	if one != nil {
		s.endStream(uri, one)
	}
}

// endStream tells the server that nobody wants a stream any more. Only who wants the next
// one waits for that and for its end, and no longer than the end should take: there are
// servers that read nothing, and such that answer nothing.
func (s *session) endStream(uri string, one *subscription) {
	s.mu.Lock()
	before := one.ending
	one.ending = true
	s.mu.Unlock()
	if before {
		return
	}
	go func() {
		defer s.renewLists()
		defer close(one.gone)
		select {
		case <-one.sent:
		case <-s.wire.over:
		}
		s.wire.cancel(one.exchange, "the subscription has ended")
		within(settleTime, one.done)
		s.wire.forget(one.exchange)
		s.forget(uri, one)
	}()
}

// fail ends a stream that is not open.
func (s *session) fail(uri string, one *subscription, why error) {
	one.why = why
	s.endStream(uri, one) // first, so that who hears of it can ask anew
	close(one.failed)
}

func (s *session) forget(uri string, one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[uri] == one {
		delete(s.subscriptions, uri)
	}
}

// acknowledged is the server's word that the stream of a request is open, unless it comes
// again or too late, and for what: a server declines by leaving out. One that does not say
// that is taken to mean all of it.
func (s *session) acknowledged(id string, accepted json.RawMessage) {
	var only *struct{ ResourceSubscriptions []string }
	if json.Unmarshal(accepted, &only) != nil {
		only = nil
	}
	uri, one := s.unopened(id)
	switch {
	case one == nil:
	case only == nil || slices.Contains(only.ResourceSubscriptions, uri):
		close(one.open)
		go s.follow(uri, one)
	default:
		s.fail(uri, one, s.refused(&call{ctx: context.Background()}, &jsonrpc.Error{
			Code: jsonrpc.CodeMethodNotFound, Message: "the server does not announce changes of this resource",
		}))
	}
}

// unopened is the stream of a request that waits for its acknowledgement, which is for the
// caller to see to, or nil.
func (s *session) unopened(id string) (uri string, one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uri, one := range s.subscriptions {
		if one.id == id && one.late.Stop() {
			return uri, one
		}
	}
	return "", nil
}
