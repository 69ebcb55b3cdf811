package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// maxSessions bounds the sessions of one relay.
const maxSessions = 4096

// server is a relay's own side.
type server struct {
	conn        *net.UnixConn
	writing     sync.Mutex
	hostNetwork *hostNetwork

	mu       sync.Mutex
	sessions map[string]*session
}

// Main serves the socket at controlFD until its other side closes it. It is the
// whole of a relay's process.
func Main() error {
	file := os.NewFile(controlFD, "control")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("cannot use descriptor %d: %w; a relay is started by toolhost, not by hand", controlFD, err)
	}
	control, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("descriptor %d is not a unix socket: a relay is started by toolhost, not by hand", controlFD)
	}
	return serve(control)
}

// serve serves one host until it closes the socket.
func serve(conn *net.UnixConn) error {
	s := &server{conn: conn, sessions: map[string]*session{}, hostNetwork: newHostNetwork(nil)}
	defer s.end()
	r := newReceiver(conn)
	for {
		m, files, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(m, files)
	}
}

func (s *server) take(m message, files []*os.File) {
	reply := message{Op: m.Op, ID: m.ID}
	switch m.Op {
	case opHello:
		s.hello(m.Proxy)
		reply.Version = version
	case opOpen:
		if err := s.open(m, files); err != nil {
			reply.Error = err.Error()
		}
		files = nil
	case opBegin, opReport, opClose:
		found := s.find(m.Of, m.Op == opClose)
		switch {
		case found == nil:
			reply.Error = "there is no such session"
		case m.Op == opBegin:
			found.begin(m.Call, m.Alone)
		case m.Op == opReport:
			reply.Report = found.reportOf(m.Call)
		default:
			closeAll(files)
			go s.close(found, m.Drain, reply) // for it may drain
			return
		}
	case opAnswer:
		if m.Ask == nil {
			break
		}
		if found := s.find(m.Ask.Session, false); found != nil {
			reply.Taken = found.answer(*m.Ask, m.Verdict, m.Why)
		}
	default:
		reply.Error = fmt.Sprintf("operation %q is unknown", m.Op)
	}
	closeAll(files)
	s.say(reply)
}

func (s *server) hello(proxy *httpproxy.Config) {
	s.hostNetwork = newHostNetwork(proxy)
}

func (s *server) open(m message, files []*os.File) error {
	if m.Session == nil || len(files) < 4 {
		closeAll(files)
		return errors.New("the session's sockets have not arrived: the relay may have too few descriptors left")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= maxSessions || s.sessions[m.Session.ID] != nil {
		closeAll(files)
		return fmt.Errorf("%d sessions are open, and no more can be", len(s.sessions))
	}
	opened, err := openSession(*m.Session, files, s.hostNetwork, s)
	if err == nil {
		s.sessions[m.Session.ID] = opened
	}
	return err
}

// close ends a session. What its calls came to goes before the answer.
func (s *server) close(ended *session, drain bool, reply message) {
	ended.close(drain)
	for _, call := range ended.ledger.begunCalls() {
		s.say(message{Op: opReport, Of: ended.spec.ID, Call: call, Report: ended.reportOf(call)})
	}
	reply.Report = ended.report()
	s.say(reply)
}

func (s *server) find(id string, take bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sessions[id]
	if take {
		delete(s.sessions, id)
	}
	return found
}

// say writes a message. Where the host reads no more, it has ended, or is about to
// end this process.
func (s *server) say(m message) {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := send(s.conn, m, nil)
	if errors.Is(err, errTooLarge) { // what one call has done ends no others
		m.Report, m.Error = nil, err.Error()
		err = send(s.conn, m, nil)
	}
	if err != nil {
		_ = s.conn.Close()
	}
}

func (s *server) asked(a Ask) { s.say(message{Op: opAsk, Ask: &a}) }

func (s *server) left(a Ask) { s.say(message{Op: opLeft, Ask: &a}) }

func (s *server) passed(session, limit string) { s.say(message{Op: opLimit, Of: session, Why: limit}) }

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, session := range s.sessions {
		session.close(false)
		delete(s.sessions, id)
	}
}
