package mcpserver

import (
	"context"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/stack"
)

// Peer is the other end of an HTTP connection, as the server around the Handler
// has found it out.
type Peer struct {
	// Identity is who has authenticated, never what a client calls itself.
	Identity string
	// Connection is the same for all requests of one connection, and for no
	// others; nil if it is not known. It must be comparable. With a method
	// Closed() bool, which any goroutine may call, it tells that it has ended.
	Connection any
}

// gone says whether the peer's connection has ended.
func (p Peer) gone() bool {
	one, tells := p.Connection.(interface{ Closed() bool })
	return tells && one.Closed()
}

type peerKey struct{}

// WithPeer tells the Handler who sends a request.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

type decodingKey struct{}

// WithDecoding has the Handler wait before it decodes the body of a request, until f
// returns; done is called after it.
func WithDecoding(ctx context.Context, f func(ctx context.Context, bytes int) (done func(), err error)) context.Context {
	return context.WithValue(ctx, decodingKey{}, f)
}

func decoding(ctx context.Context, bytes int) (done func(), err error) {
	f, _ := ctx.Value(decodingKey{}).(func(context.Context, int) (func(), error))
	if f == nil {
		return func() {}, nil
	}
	return f(ctx, bytes)
}

// peerOf is who sends a request. All that come over one pipe, or from a server
// that tells nothing, are the same peer's.
func peerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// share says whether an identity that has so many of a table's places may have
// one more: never more than are left, so that the last is out of anyone's reach.
func share(own, all, most int) bool { return own < most-all }

// knowOwner remembers who began a session over HTTP: a request's context has the
// values of the one that began its session.
func (s *Server) knowOwner(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		stack.Middle()
		if one, ok := r.GetSession().(*mcpsdk.ServerSession); ok && one.ID() != "" {
			s.about(one, func(*known) {
				if _, begun := s.owners[one.ID()]; !begun {
					s.owners[one.ID()] = peerOf(ctx).Identity
				}
			})
		}
		return next(ctx, method, r)
	}
}

// ownerOf is the identity that began a session; over stdio there is only one.
func (s *Server) ownerOf(one *mcpsdk.ServerSession) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[one.ID()]
}

// owns says whether a session over HTTP, one that is there, was begun by the
// identity.
func (s *Server) owns(identity, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, known := s.owners[id]
	return known && owner == identity
}

// mayConnect says whether an identity may begin one more session over HTTP. To the SDK
// a request without a session is one as well, without an id.
func (s *Server) mayConnect(identity string) bool {
	all, own := 0, 0
	for one := range s.sdk.Sessions() {
		if one.ID() == "" {
			continue
		}
		all++
		if s.owns(identity, one.ID()) {
			own++
		}
	}
	return share(own, all, maxSessions)
}
