package egress

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// session is the network of one instance, as its relay serves it.
type session struct {
	relay *relayProcess
	at    *process.Process
	id    string

	mu     sync.Mutex
	ended  *api.Network // what it came to, once it is over
	visits map[process.Listener]*visit
	first  *visit // of the call that the process was started for; nil when that is over
	named  int

	reportMu sync.Mutex              // apart from mu, under which End waits
	parts    map[string]*api.Network // of the calls that the end has found
	asks     map[relay.Ask]*asking   // those that are not settled
}

func newSession(at *process.Process, id string) *session {
	return &session{at: at, id: id, visits: map[process.Listener]*visit{}, first: &visit{}, parts: map[string]*api.Network{}, asks: map[relay.Ask]*asking{}}
}

// open gives the process its session. A kill that comes meanwhile ends the session only
// behind that, or else the relay would serve it for ever.
func (n *session) open(s relay.Session, files []*os.File) (opened func(context.Context) error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.at.SetNetwork(n) { // and nobody would end it
		n.leave()
		return nil, outcome.ErrEndedStarting
	}
	return n.relay.client.Open(s, files)
}

// answerBy bounds the wait for an answer of the relay that may come until by: on a busy
// machine it is late, and ending it would cost all other calls their connections.
func answerBy(by time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), max(answerTime, time.Until(by)))
}

// Ending begins the end of the session.
func (n *session) Ending(by time.Time, drain bool) {
	n.relay.maker.Tasks.Run("end a call's connections", func() { n.End(by, drain) })
}

// End ends the session; nothing of it is left when it returns.
func (n *session) End(by time.Time, drain bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended != nil {
		return
	}
	ctx, cancel := answerBy(by)
	defer cancel()
	got, err := n.relay.client.End(ctx, n.id, drain)
	if err != nil || got == nil {
		// What holds its sockets must not outlive the call.
		if _, answered := errors.AsType[relay.RefusedError](err); !answered && !closed(n.relay.client.Gone()) {
			n.relay.maker.Logger.Error("the network relay does not end a call's connections: ending the relay", "error", err)
			_ = n.relay.client.Close()
			_ = n.relay.process.Kill()
		}
		got = lost(err)
	}
	n.ended = got
	n.leave()
}

// leave is the session's end at its relay, which ends with the last one if it is retired.
func (n *session) leave() {
	n.relay.mu.Lock()
	delete(n.relay.sessions, n.id)
	last := n.relay.retired && len(n.relay.sessions) == 0
	n.relay.mu.Unlock()
	if last {
		_ = n.relay.client.Close()
	}
}

// lost returns what is known of a network whose relay has ended.
func lost(err error) *api.Network {
	if err == nil {
		err = relay.ErrGone
	}
	return nothing(sandbox.NetworkGrants, "network_error: "+err.Error())
}

// lastOf is what a session that has ended came to for a call. It is locked.
func (n *session) lastOf(name string) *api.Network {
	if name == "" {
		return n.ended
	}
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if part := n.parts[name]; part != nil {
		return part
	}
	return nothing(sandbox.NetworkGrants, n.ended.Error)
}

// reported takes what a call came to whose session ends.
func (n *session) reported(name string, part *api.Network) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	n.parts[name] = part
}

// Reached is the call's part of what the session came to, which ends the count for it.
func (n *session) Reached(l process.Listener, by time.Time, kept, livesOn, drain bool) *api.Network {
	if !livesOn {
		n.End(by, drain)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.part(l)
	if !kept { // a process made ahead is all the call's own
		v = &visit{}
	}
	r := *n.report(by, v.name)
	r.Shared = v.shared
	return &r
}

// report is what there is so far. The session is locked.
func (n *session) report(by time.Time, name string) *api.Network {
	if n.ended != nil {
		return n.lastOf(name)
	}
	ctx, cancel := answerBy(by)
	defer cancel()
	got, err := n.relay.client.Report(ctx, n.id, name)
	if err != nil || got == nil {
		return lost(err)
	}
	return got
}
