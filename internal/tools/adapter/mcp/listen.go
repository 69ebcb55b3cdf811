package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// subscription is a stream of the server's for one resource.
type subscription struct {
	*exchange                  // answered once the server has ended it
	id           string        // of its request, as JSON
	open         chan struct{} // closed when the server has acknowledged it
	acknowledged sync.Once
}

// listen subscribes to a resource where the protocol has a stream for that. There is one
// for all who watch the resource.
func (s *session) listen(ctx context.Context, method string, p params) (json.RawMessage, bool, error) {
	uri, _ := p["uri"].(string)
	if method == unsubscribe {
		s.unlisten(uri)
		return json.RawMessage("{}"), true, nil
	}
	one, fresh, err := s.subscription(uri)
	if err == nil && fresh {
		err = s.stream(one.exchange, map[string]any{"resourceSubscriptions": []string{uri}})
	}
	if err != nil {
		return nil, false, err
	}
	select {
	case <-one.open:
		return json.RawMessage("{}"), true, nil
	case <-one.done:
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

// subscription is the one to a resource; a fresh one is still to be asked for.
func (s *session) subscription(uri string) (one *subscription, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one = s.subscriptions[uri]; one != nil {
		if ended, _ := s.wire.result(one.exchange); ended == nil {
			return one, false, nil
		}
	}
	one = &subscription{exchange: newExchange(), open: make(chan struct{})}
	if err := s.wire.number(one.exchange); err != nil {
		return nil, false, err
	}
	raw, _ := json.Marshal(one.exchange.id.Raw()) // a number
	one.id = string(raw)
	s.subscriptions[uri] = one
	return one, true, nil
}

// unlisten ends the stream of a resource. A server may take the end of one for that of
// the next one, if that begins before.
func (s *session) unlisten(uri string) {
	s.mu.Lock()
	one := s.subscriptions[uri]
	delete(s.subscriptions, uri)
	s.mu.Unlock()
	if one != nil {
		s.wire.cancel(one.exchange, "the subscription has ended")
		within(settleTime, one.done) // those that answer nothing any more have had the time
		s.wire.forget(one.exchange)
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
