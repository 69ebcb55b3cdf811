// Package egress serves the connections of processes with network grants: it owns the
// relay, a session there for each process, the visits of calls to it, and the questions
// about names that are not granted.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network/relay"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// offered says that this program can be a relay: Main was called.
var offered atomic.Bool

// Main serves, and does not return, in a process that was started as a relay.
func Main() {
	offered.Store(true)
	if len(os.Args) != 1 || os.Args[0] != relayName {
		return
	}
	if err := relay.Main(); err != nil {
		fmt.Fprintln(os.Stderr, relayName+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Offered is why this program cannot be a relay, with the remedy; nil if it can.
func Offered() error {
	if offered.Load() {
		return nil
	}
	return errors.New("network grants are served by a process of the host's own program, which does not offer that: call supervisor.RelayMain first in its main")
}

// Relays are those of a supervisor. There is one at a time for new sessions; it is started
// when it is needed, and again after its end.
type Relays struct {
	maker    *process.Maker
	binaries *prepare.Binaries
	features func() sandbox.Features
	deny     []netip.Prefix

	turn    chan struct{} // has room for the one that uses what follows, or starts a relay
	current *relayProcess
	over    bool
}

// New has relays made as maker makes processes, which may be completed later.
func New(maker *process.Maker, binaries *prepare.Binaries, features func() sandbox.Features, deny []netip.Prefix) *Relays {
	return &Relays{maker: maker, binaries: binaries, features: features, deny: deny, turn: make(chan struct{}, 1)}
}

var errClosed = errors.New("the supervisor is closed")

// relayFor gives a session a living relay, which is not retired before it has ended.
func (h *Relays) relayFor(ctx context.Context, n *session) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done(): // a start takes longer than some calls have
		return fmt.Errorf("cannot wait for the network relay: %w", context.Cause(ctx))
	}
	if h.over {
		return errClosed
	}
	outside := outsideKey()
	if r := h.current; r != nil {
		if !closed(r.client.Gone()) && r.outside == outside {
			r.take(n)
			return nil
		}
		h.current = nil
		r.retire()
	}
	r, err := h.start(ctx, outside)
	if err != nil {
		return fmt.Errorf("cannot start the network relay: %w", err)
	}
	h.current = r
	r.take(n)
	return nil
}

// Close ends the relay for good.
func (h *Relays) Close() {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	h.over = true
	if r := h.current; r != nil {
		_ = r.client.Close()
		<-r.process.Gone()
	}
}

// Connect has a relay serve the sockets of a process that starts. Should its tool begin
// before, what that asks for waits until it is served; where the process is started before
// its call, until it has that.
func (h *Relays) Connect(ctx context.Context, call *prepare.Prepared, p *process.Process, sockets *sandbox.Sockets) (opened func(context.Context) error, err error) {
	if call.Work == prepare.ForAhead {
		if n := (&unserved{relays: h, at: p, sockets: sockets}); !p.SetNetwork(n) {
			n.End(time.Time{}, false)
		}
		return nil, nil
	}
	return h.serve(ctx, call, p, sockets, func() {})
}

// serve calls serving before anything is served.
func (h *Relays) serve(ctx context.Context, call *prepare.Prepared, p *process.Process, sockets *sandbox.Sockets, serving func()) (opened func(context.Context) error, err error) {
	defer sockets.Close()
	grants, ask, _ := call.Policy.Grants()
	n := newSession(p, call.ID)
	if err := h.relayFor(ctx, n); err != nil {
		return nil, refused(err)
	}
	serving()
	wait, err := n.open(relay.Session{
		ID: n.id, Grants: grants, Ask: ask, Limits: call.Bounds.Network, Deny: h.deny,
	}, sockets.Files())
	if err != nil {
		return nil, refused(err)
	}
	return func(ctx context.Context) error { return refused(wait(ctx)) }, nil
}

// refused is why a call does not start; nil if it does.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return outcome.Refuse(api.StatusStartFailed, api.ReasonSandbox, err)
}

// unserved is the network of a process that waits for its call: nothing that it asks
// for is answered before.
type unserved struct {
	relays  *Relays
	at      *process.Process
	sockets *sandbox.Sockets
	taken   atomic.Bool
}

// Arrive has the sockets served for the call.
func (u *unserved) Arrive(ctx context.Context, call *prepare.Prepared, _ process.Listener, serving func()) error {
	if u.taken.Swap(true) {
		return nil // it ends
	}
	opened, err := u.relays.serve(ctx, call, u.at, u.sockets, serving)
	if err != nil {
		return err
	}
	return opened(ctx)
}

// Ending has nothing to begin.
func (u *unserved) Ending(time.Time, bool) {}

// Reached is nil.
func (u *unserved) Reached(process.Listener, time.Time, bool, bool, bool) *api.Network { return nil }

// End closes the sockets, unless a call has them served.
func (u *unserved) End(time.Time, bool) {
	if !u.taken.Swap(true) {
		u.sockets.Close()
	}
}

// Reached ends a call's connections, or of a process that lives on says what they came to
// meanwhile.
func Reached(p *process.Process, call *prepare.Prepared, l process.Listener, by time.Time, livesOn, drain bool) *api.Network {
	if n := p.Network(); n != nil {
		if reached := n.Reached(l, by, call.Request.Keep != nil, livesOn, drain); reached != nil {
			return reached
		}
	}
	return nothing(call.Plan.Receipt().Network, "")
}

// nothing is a network in which nothing was reached.
func nothing(mode, failure string) *api.Network {
	return &api.Network{Mode: mode, Flows: []api.NetworkFlow{}, Refused: []api.NetworkRefusal{}, Error: failure}
}
