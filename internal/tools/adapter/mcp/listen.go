package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// subscription is a stream of the server's for one resource.
type subscription struct {
	*exchange                  // answered once the server has ended it
	id           string        // of its request, as JSON
	sent         chan struct{} // closed when the request is, or cannot be
	open         chan struct{} // closed when the server has acknowledged it
	acknowledged sync.Once
	due          time.Time     // when it should have
	ending       bool          // since this side wants no more of it; guarded by the session's mu
	gone         chan struct{} // closed when it has ended for that
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
	late := time.NewTimer(time.Until(one.due))
	defer late.Stop()
	select {
	case <-one.open:
		return json.RawMessage("{}"), true, nil
	case <-one.done:
		if refused, ok := asError(one.answer); ok {
			return nil, true, s.refused(&call{ctx: ctx}, refused)
		}
		return nil, true, fmt.Errorf("MCP server %q has ended the subscription at once", s.options.Name)
	case <-late.C:
		s.endStream(uri, one)
		return nil, true, fmt.Errorf("MCP server %q has not acknowledged the subscription within %s: a higher startTimeout gives it more", s.options.Name, s.options.StartTimeout)
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
		exchange: newExchange(), sent: make(chan struct{}), open: make(chan struct{}), gone: make(chan struct{}), due: time.Now().Add(s.options.StartTimeout),
	}
	if err := s.wire.number(one.exchange); err != nil {
		return nil, streamFresh, err
	}
	raw, _ := json.Marshal(one.exchange.id.Raw()) // a number
	one.id = string(raw)
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
// one waits for its end, and no longer than that should take: there are servers that answer
// nothing to it.
func (s *session) endStream(uri string, one *subscription) {
	s.mu.Lock()
	before := one.ending
	one.ending = true
	s.mu.Unlock()
	if before {
		return
	}
	select {
	case <-one.sent:
	case <-s.wire.over:
	}
	s.wire.cancel(one.exchange, "the subscription has ended")
	go func() {
		defer close(one.gone)
		within(settleTime, one.done)
		s.wire.forget(one.exchange)
		s.forget(uri, one)
	}()
}

func (s *session) forget(uri string, one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[uri] == one {
		delete(s.subscriptions, uri)
	}
}

// acknowledged is the server's word that the stream of a request is open.
func (s *session) acknowledged(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.subscriptions {
		if one.id == id {
			one.acknowledged.Do(func() { close(one.open) })
		}
	}
}
