package process

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// Network is what serves the connections of a process with network grants.
type Network interface {
	// Arrive serves a call that has come to the process, or counts for it. serving comes
	// before anything is served that was not before.
	Arrive(ctx context.Context, call *prepare.Prepared, l Listener, serving func()) error
	// Ending begins the end, of a process that is being killed: Reached has less to wait
	// for.
	Ending(by time.Time, drain bool)
	// Reached is what the connections came to for a call, of a kept process since it
	// arrived; nil where none were served. They end, unless the process lives on.
	Reached(l Listener, by time.Time, kept, livesOn, drain bool) *api.Network
	// End ends them, if that was not done before; nothing of them is left when it
	// returns. It may wait until by, and a while longer at most where that is near or
	// past. drain lets what the tool had sent arrive.
	End(by time.Time, drain bool)
}

// Connector has somebody serve the sockets of a process, which it closes, and gives
// the process its Network. opened waits until they are served.
type Connector func(ctx context.Context, call *prepare.Prepared, p *Process, sockets *sandbox.Sockets) (opened func(context.Context) error, err error)

// Network is nil without network grants.
func (p *Process) Network() Network {
	if n := p.network.Load(); n != nil {
		return *n
	}
	return nil
}

// SetNetwork gives the process what serves its connections, which ends with it; false if
// that is freed already.
func (p *Process) SetNetwork(n Network) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return false
	}
	p.network.Store(&n)
	return true
}

func (p *Process) endNetwork() {
	if n := p.Network(); n != nil {
		n.End(time.Now().Add(KillTime), false)
	}
}

// Listeners are the calls that the process serves at present.
func (p *Process) Listeners() []Listener { return p.audience.present() }

// connect has the sockets served while the launcher goes on to start the tool.
func (b *birth) connect(ctx context.Context) (err error) {
	if _, _, granted := b.call.Policy.Grants(); !granted {
		return nil
	}
	if sockets := b.process.launcher.TakeSockets(ctx); sockets != nil {
		b.opened, err = b.Connect(ctx, b.call, b.process, sockets)
	}
	return err
}

// served waits until the network of the process is served, which goes on while its
// tool comes up.
func (b *birth) served(ctx context.Context) error {
	if b.opened == nil {
		return nil
	}
	return b.opened(ctx)
}
