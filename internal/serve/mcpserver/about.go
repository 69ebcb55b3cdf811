package mcpserver

import mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

// known is what is known of one of the SDK's sessions from its first request to its end.
// The server's mu guards it.
type known struct {
	session *session // what its calls have in common; nil before the first
	level   string   // from which on it wants logs; empty if it has said none
}

// knownOf is what is known of a session; nothing if nothing is yet.
func (s *Server) knownOf(one *mcpsdk.ServerSession) (k known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.known[one]; found != nil {
		k = *found
	}
	return k
}

// about has f look at what is known of a session, and change it.
func (s *Server) about(one *mcpsdk.ServerSession, f func(*known)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[one]
	if k == nil {
		k = &known{}
		s.known[one] = k
		go func() {
			_ = one.Wait()
			s.forget(one)
		}()
	}
	f(k)
}

// forget is what a session's end brings with it.
func (s *Server) forget(one *mcpsdk.ServerSession) {
	s.mu.Lock()
	of := s.known[one].session
	delete(s.known, one) // what comes to be known from now on is forgotten anew
	delete(s.owners, one.ID())
	s.mu.Unlock()
	s.gateway.Forget(one)
	if of != nil {
		s.config.Turns.Approvals().EndSession(of.peer.Identity, of.approvals)
	}
}
