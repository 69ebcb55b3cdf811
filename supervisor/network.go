package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Ceiling bounds the networks and the files of all calls; the zero value bounds nothing.
type Ceiling struct {
	// Network is sandbox.NetworkNone, NetworkHost for no bound, or NetworkGrants; empty is
	// NetworkGrants where there are Grants, else NetworkHost.
	Network string
	Grants  []network.Grant
	// Source says where the bound of networks comes from, for refusals.
	Source string
	// Files says why no call may be granted what is at a path, to read or to write; nil allows
	// all. It is asked about what was opened for the call, by its real path, and may be called
	// from any goroutine.
	Files func(path string, write bool) error
}

// mode is the ceiling's network, with the word that may be left out.
func (l Ceiling) mode() string {
	if len(l.Grants) > 0 {
		return cmp.Or(l.Network, sandbox.NetworkGrants)
	}
	return cmp.Or(l.Network, sandbox.NetworkHost)
}

// complete checks the ceiling, and has its grants as those of calls are.
func (l *Ceiling) complete() error {
	words := []string{sandbox.NetworkNone, sandbox.NetworkHost, sandbox.NetworkGrants}
	switch mode := l.mode(); {
	case !slices.Contains(words, mode):
		return fmt.Errorf("ceiling: network %q is unknown: must be one of %s", mode, strings.Join(words, ", "))
	case mode != sandbox.NetworkGrants && len(l.Grants) > 0:
		return fmt.Errorf("ceiling: network %q and grants contradict one another: leave one of them out", mode)
	}
	l.Grants = slices.Clone(l.Grants)
	for i, g := range l.Grants {
		var err error
		if l.Grants[i], err = g.Normal(); err != nil {
			return fmt.Errorf("ceiling: %w", err)
		}
	}
	return nil
}

// Refuses returns why calls with a policy go beyond the ceiling of networks.
// What else is wrong with it is for the calls to say.
func (l Ceiling) Refuses(p Policy) error {
	p.Read, p.Write, p.Workspace = nil, nil, ""
	resolved, err := p.Resolve()
	if err != nil {
		return nil
	}
	return l.refusesNetwork(resolved)
}

// refusesNetwork says why a policy goes beyond the ceiling of networks.
func (l Ceiling) refusesNetwork(p sandbox.Resolved) error {
	bound, mode := l.mode(), p.Network()
	if bound == sandbox.NetworkHost || mode == sandbox.NetworkNone {
		return nil
	}
	source := ""
	if l.Source != "" {
		source = " (" + l.Source + ")"
	}
	if bound == sandbox.NetworkNone || mode == sandbox.NetworkHost {
		return fmt.Errorf("network %s goes beyond the ceiling limits.network: %s%s: leave it out, or have the operator raise the ceiling", mode, l, source)
	}
	grants, ask, _ := p.Grants()
	if ask {
		return fmt.Errorf("asking about names that are not granted goes beyond the ceiling limits.network: %s%s: leave it out, or have the operator raise the ceiling", l, source)
	}
	if err := network.Exceeds(l.Grants, grants); err != nil {
		return fmt.Errorf("%w%s", err, source)
	}
	return nil
}

func (l Ceiling) String() string {
	if mode := l.mode(); mode != sandbox.NetworkGrants {
		return mode
	}
	var list []string
	for _, g := range l.Grants {
		list = append(list, g.String())
	}
	return fmt.Sprintf("%q", list)
}

// refusesFiles says why a policy goes beyond the ceiling of files.
func (l Ceiling) refusesFiles(p sandbox.Resolved) error {
	if l.Files == nil {
		return nil
	}
	for path, write := range p.Sources() {
		if err := l.Files(path, write); err != nil {
			return err
		}
	}
	return nil
}

// checkPolicy refuses what the ceiling, or this host, does not allow.
func (s *Supervisor) checkPolicy(p sandbox.Resolved) error {
	if err := cmp.Or(s.config.Ceiling.refusesNetwork(p), s.config.Ceiling.refusesFiles(p)); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	if _, _, granted := p.Grants(); granted && !relayOffered.Load() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, errNoRelay)
	}
	return nil
}

// netSession is the network of one instance, as its relay serves it.
type netSession struct {
	relay *relayProcess
	at    *process.Process
	id    string

	mu     sync.Mutex
	ended  *api.Network // what it came to, once it is over
	visits map[*call.Call]*visit
	first  *visit // of the call that the process was started for; nil when that is over
	named  int

	reportMu sync.Mutex              // apart from mu, under which End waits
	parts    map[string]*api.Network // of the calls that the end has found
	asks     map[relay.Ask]*asking   // those that are not settled
}

var _ process.Network = (*netSession)(nil)

// connectNetwork has a relay serve the sockets of a process that starts. Should its tool
// begin before, what that asks for waits until it is served; where the process is started
// before its call, until it has that.
func (s *Supervisor) connectNetwork(ctx context.Context, prepared *prepare.Prepared, p *process.Process, sockets *sandbox.Sockets) (opened func(context.Context) error, err error) {
	if prepared.Work == prepare.ForAhead {
		if n := (&unserved{sockets: sockets}); !p.SetNetwork(n) {
			n.End(time.Time{}, false)
		}
		return nil, nil
	}
	return s.serveNetwork(ctx, prepared, p, sockets, func() {})
}

// serveNetwork calls opening before anything is served.
func (s *Supervisor) serveNetwork(ctx context.Context, prepared *prepare.Prepared, p *process.Process, sockets *sandbox.Sockets, opening func()) (opened func(context.Context) error, err error) {
	defer sockets.Close()
	grants, ask, _ := prepared.Policy.Grants()
	session := &netSession{at: p, id: prepared.ID, visits: map[*call.Call]*visit{}, first: &visit{}, parts: map[string]*api.Network{}, asks: map[relay.Ask]*asking{}}
	if err := s.relayFor(ctx, session); err != nil {
		return nil, outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
	}
	opening()
	wait, err := session.open(relay.Session{
		ID: session.id, Grants: grants, Ask: ask, Limits: prepared.Bounds.Network, Deny: s.config.DenyNetworks,
	}, sockets.Files())
	if err != nil {
		return nil, outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
	}
	return func(ctx context.Context) error {
		if err := wait(ctx); err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
		}
		return nil
	}, nil
}

// open gives the process its session. A kill that comes meanwhile ends the session only
// behind that, or else the relay would serve it for ever.
func (n *netSession) open(s relay.Session, files []*os.File) (opened func(context.Context) error, err error) {
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

// End ends the session; nothing of it is left when it returns.
func (n *netSession) End(by time.Time, drain bool) *api.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended != nil {
		return n.ended
	}
	ctx, cancel := answerBy(by)
	defer cancel()
	got, err := n.relay.client.End(ctx, n.id, drain)
	if err != nil || got == nil {
		// What holds its sockets must not outlive the call.
		if _, answered := errors.AsType[relay.RefusedError](err); !answered && !closed(n.relay.client.Gone()) {
			n.relay.s.config.Logger.Error("the network relay does not end a call's connections: ending the relay", "error", err)
			_ = n.relay.client.Close()
			_ = n.relay.process.Kill()
		}
		got = lost(err)
	}
	n.ended = got
	n.leave()
	return got
}

// leave is the session's end at its relay, which ends with the last one if it is retired.
func (n *netSession) leave() {
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
	return &api.Network{Mode: sandbox.NetworkGrants, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}, Error: "network_error: " + err.Error()}
}

// lastOf is what a session that has ended came to for a call. It is locked.
func (n *netSession) lastOf(name string) *api.Network {
	if name == "" {
		return n.ended
	}
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	if part := n.parts[name]; part != nil {
		return part
	}
	return &api.Network{Mode: sandbox.NetworkGrants, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}, Error: n.ended.Error}
}

// reported takes what a call came to whose session ends.
func (n *netSession) reported(name string, part *api.Network) {
	n.reportMu.Lock()
	defer n.reportMu.Unlock()
	n.parts[name] = part
}

// sessionOf is nil for a process without network grants.
func sessionOf(p *process.Process) *netSession {
	n, _ := p.Network().(*netSession)
	return n
}

// of is the call's part of what the session came to, which ends the count for it.
func (n *netSession) of(c *call.Call, by time.Time, kept bool) *api.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.part(c)
	if !kept { // a process made ahead is all the call's own
		v = &visit{}
	}
	r := *n.report(by, v.name)
	r.Shared = v.shared
	return &r
}

// report is what there is so far. The session is locked.
func (n *netSession) report(by time.Time, name string) *api.Network {
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

// reached ends a call's connections, or of a process that lives on says what they
// came to meanwhile.
func reached(tree call.Tree, c *call.Call, p *prepare.Prepared, by time.Time, livesOn, drain bool) *api.Network {
	g, _ := tree.(*kept.Guest)
	if g == nil || sessionOf(g.Process) == nil {
		return &api.Network{Mode: p.Plan.Receipt().Network, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}}
	}
	n := sessionOf(g.Process)
	if !livesOn {
		n.End(by, drain)
	}
	return n.of(c, by, p.Request.Keep != nil)
}

// ending begins the end of a call's connections, whose processes are being killed:
// reached has less to wait for.
func ending(tree call.Tree, by time.Time, drain bool) {
	if g, _ := tree.(*kept.Guest); g != nil {
		if n := sessionOf(g.Process); n != nil {
			n.relay.s.tasks.Run("end a call's connections", func() { n.End(by, drain) })
		}
	}
}

func verdictOf(a spec.Answer) relay.Verdict {
	switch {
	case a.Denied != "" || string(a.Value) != "true":
		return relay.Denied
	case a.Always:
		return relay.AllowTurn
	}
	return relay.AllowOnce
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
