package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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

// Ceiling bounds the networks of all calls, whatever asks for more; its zero value
// bounds nothing.
type Ceiling struct {
	// Network is sandbox.NetworkNone, NetworkGrants with Grants, or empty or
	// NetworkHost for no bound.
	Network string
	Grants  []network.Grant
	// Source says where the bound comes from, for refusals.
	Source string
}

// refuses says why a policy goes beyond the ceiling.
func (l Ceiling) refuses(p sandbox.Resolved) error {
	bound := cmp.Or(l.Network, sandbox.NetworkHost)
	mode := p.Network()
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
	if l.Network != sandbox.NetworkGrants {
		return cmp.Or(l.Network, sandbox.NetworkHost)
	}
	var list []string
	for _, g := range l.Grants {
		list = append(list, g.String())
	}
	return fmt.Sprintf("%q", list)
}

// checkNetwork refuses what the ceiling, or this host, does not allow.
func (s *Supervisor) checkNetwork(p sandbox.Resolved) error {
	if err := s.config.Ceiling.refuses(p); err != nil {
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

	mu    sync.Mutex
	ended *api.Network // what it came to, once it is over
	since map[*call.Call]*api.Network
}

var _ process.Network = (*netSession)(nil)

// connectNetwork has a relay serve the sockets of a process that has started. The
// tool may have begun: what it asks for waits until it is served.
func (s *Supervisor) connectNetwork(ctx context.Context, prepared *prepare.Prepared, p *process.Process, sockets *sandbox.Sockets) (opened func(context.Context) error, err error) {
	defer sockets.Close()
	grants, ask, _ := prepared.Policy.Grants()
	r, err := s.relay(ctx)
	if err != nil {
		return nil, outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
	}
	session := &netSession{relay: r, at: p, id: prepared.ID, since: map[*call.Call]*api.Network{}}
	r.mu.Lock()
	r.sessions[session.id] = session
	r.mu.Unlock()
	p.SetNetwork(session)
	wait, err := r.client.Open(relay.Session{
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

// End ends the session; nothing of it is left when it returns.
func (n *netSession) End(drain bool) *api.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended != nil {
		return n.ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
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
	n.relay.mu.Lock()
	delete(n.relay.sessions, n.id)
	last := n.relay.retired && len(n.relay.sessions) == 0
	n.relay.mu.Unlock()
	if last {
		_ = n.relay.client.Close()
	}
	return got
}

// lost is what is known of a network whose relay has ended.
func lost(err error) *api.Network {
	if err == nil {
		err = relay.ErrGone
	}
	return &api.Network{Mode: sandbox.NetworkGrants, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}, Error: "network_error: " + err.Error()}
}

// report is what there is so far.
func (n *netSession) report() *api.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended != nil {
		return n.ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	got, err := n.relay.client.Report(ctx, n.id)
	if err != nil || got == nil {
		return lost(err)
	}
	return got
}

// sessionOf is nil for a process without network grants.
func sessionOf(p *process.Process) *netSession {
	n, _ := p.Network().(*netSession)
	return n
}

// arrive notes what there was when the call came to a kept process.
func arrive(c *call.Call, g *kept.Guest) {
	n := sessionOf(g.Process)
	if n == nil {
		return
	}
	before := n.report()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.since[c] = before
}

// of is the call's part of what the session came to.
func (n *netSession) of(c *call.Call, kept bool, all *api.Network) *api.Network {
	n.mu.Lock()
	before := n.since[c]
	delete(n.since, c)
	n.mu.Unlock()
	if !kept {
		return all
	}
	r := since(all, before)
	r.Shared = true
	return r
}

// since is what all has beyond before.
func since(all, before *api.Network) *api.Network {
	r := *all
	if before == nil {
		return &r
	}
	r.Flows, r.Refused = []api.NetworkFlow{}, []api.NetworkRefusal{}
	for _, f := range all.Flows {
		i := slices.IndexFunc(before.Flows, func(b api.NetworkFlow) bool {
			return b.Name == f.Name && b.Address == f.Address && b.Port == f.Port && b.Via == f.Via
		})
		if i >= 0 {
			b := before.Flows[i]
			f.Connections, f.SentBytes, f.ReceivedBytes = f.Connections-b.Connections, f.SentBytes-b.SentBytes, f.ReceivedBytes-b.ReceivedBytes
		}
		if i < 0 || f.Connections > 0 || f.SentBytes > 0 || f.ReceivedBytes > 0 {
			r.Flows = append(r.Flows, f)
		}
	}
	for _, f := range all.Refused {
		i := slices.IndexFunc(before.Refused, func(b api.NetworkRefusal) bool {
			return b.Name == f.Name && b.Address == f.Address && b.Port == f.Port && b.Why == f.Why
		})
		if i >= 0 {
			f.Count -= before.Refused[i].Count
		}
		if f.Count > 0 {
			r.Refused = append(r.Refused, f)
		}
	}
	r.MoreFlows, r.MoreRefused, r.Unreachable = all.MoreFlows-before.MoreFlows, all.MoreRefused-before.MoreRefused, all.Unreachable-before.Unreachable
	return &r
}

// reached ends a call's connections, or of a process that lives on says what they
// came to meanwhile.
func reached(tree call.Tree, c *call.Call, p *prepare.Prepared, livesOn, drain bool) *api.Network {
	g, _ := tree.(*kept.Guest)
	if g == nil || sessionOf(g.Process) == nil {
		return &api.Network{Mode: p.Plan.Receipt().Network, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}}
	}
	n, keeps := sessionOf(g.Process), p.Request.Keep != nil
	if livesOn {
		return n.of(c, keeps, n.report())
	}
	return n.of(c, keeps, n.End(drain))
}

// ending begins the end of a call's connections, whose processes are being killed:
// reached has less to wait for.
func ending(tree call.Tree, drain bool) {
	if g, _ := tree.(*kept.Guest); g != nil {
		if n := sessionOf(g.Process); n != nil {
			n.relay.s.tasks.Run("end a call's connections", func() { n.End(drain) })
		}
	}
}

// asked puts a connection's question to one of the calls that the process serves.
func (n *netSession) asked(a relay.Ask) {
	settle := func(answer spec.Answer, why string) {
		_ = n.relay.client.Answer(a, verdictOf(answer), why) // a relay that has ended needs none
	}
	for _, l := range n.at.Listeners() {
		if c, ok := l.(*call.Call); ok && c.AskNetwork(a.Name, a.Port, settle) {
			return
		}
	}
	settle(spec.Answer{Denied: api.OutcomeFailed}, "no call is there to ask for")
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
