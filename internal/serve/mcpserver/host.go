package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/turn"
)

// asHost is what the gateway needs of the server.
func (s *Server) asHost() gateway.Host {
	return gateway.Host{
		Logger: s.config.Logger, Servers: s.config.Servers, Renew: s.config.Renew,
		Identity: s.rights.identity, Share: func(ctx context.Context) string { return s.shareOf(peerOf(ctx).Identity) }, LogsOf: s.logsOf,
		Call: func(ctx context.Context, r *mcpsdk.CallToolRequest, mayAsk bool) (*api.Result, *verbatim.Inputs, error) {
			a, err := s.make(ctx, r, mayAsk)
			return a.result, a.asks, err
		},
		CallFor: s.callFor, Receipt: receipt,
		Track: func(one *mcpsdk.ServerSession) { s.about(one, func(*known) {}) },
		Go:    s.soon,
		Reload: func() {
			s.Reload(s.closing)
			s.changed.Store(true)
		},
		ToolsChanged: func() { s.sdk.AddTool(statusTool(), s.status) },
		Loaded:       s.loaded, Closing: s.closing,
	}
}

// Notice takes what the kept process of an entry's server announces, and with an
// empty method that the process has ended. share is the only one that the process
// serves; empty is all. It does not wait.
func (s *Server) Notice(entry, share, method string, params json.RawMessage) {
	s.gateway.Notice(gateway.Origin{Entry: entry, Share: share}, method, params)
}

// shareOf is the share of kept processes that serves an identity's calls.
func (s *Server) shareOf(identity string) string {
	if s.config.Share == nil {
		return ""
	}
	return s.config.Share(identity)
}

// logsOf is the share whose processes' messages a session may get, if it has set a level.
func (s *Server) logsOf(one *mcpsdk.ServerSession) (share string, wanted bool) {
	if s.knownOf(one).level == "" {
		return "", false
	}
	return s.shareOf(s.ownerOf(one)), true
}

// callFor makes a call that no client waits for, in an identity's name.
func (s *Server) callFor(identity string, made turn.Call) (*api.Result, error) {
	c, err := s.begin(s.newSession("", Peer{Identity: identity}), "", made, turn.Spec{Headless: true})
	if err != nil {
		return nil, err
	}
	go c.run()
	<-c.done
	return c.result, nil
}

// soon runs f on a goroutine that Close waits for, unless the server is closed.
func (s *Server) soon(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Go(f)
	}
}

// entryOf is the entry whose server a call is for, if it is for one.
func (s *Server) entryOf(name string) string {
	if entry, _, is := strings.Cut(name, ":"); is {
		return entry
	}
	return s.offerOf(name).entry
}

// origin is where the server of a call is.
func (c *call) origin() gateway.Origin {
	return gateway.Origin{Entry: c.s.entryOf(c.made.Tool), Share: c.s.shareOf(c.session.peer.Identity)}
}
