package supervisor

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// startWait is how long a start waits for others of its pool: where a tool is slow to
// answer, no longer than anybody notices.
const startWait = 250 * time.Millisecond

// pools are the gates of those that are in use.
type pools struct {
	queue admission.Limits // what Running does not say

	mu    sync.Mutex
	gates map[Pool]*pool
}

type pool struct {
	*admission.Gate
	// starting has room for as many starts at once as there are pairs of CPUs: a start
	// takes the CPU that most of a call takes, and is not held by the tool's CPU limits
	// yet, so that a pool whose calls are over at once would have all CPUs.
	starting chan struct{}
	users    int // that wait or run; guarded by pools.mu
}

func newPools(limits admission.Limits) *pools {
	return &pools{queue: limits, gates: map[Pool]*pool{}}
}

// enter waits for a slot of the pool; leave gives it back and must be called once.
func (p *pools) enter(ctx context.Context, of Pool, share Share) (leave func(), err error) {
	if of.Running <= 0 {
		return func() {}, nil
	}
	gate := p.join(of)
	release, err := gate.AcquireFor(ctx, admission.Share{Key: share.Key}) // its quota is of all calls
	if err != nil {
		p.quit(of, gate)
		return nil, err
	}
	return func() { release(); p.quit(of, gate) }, nil
}

func (p *pools) join(of Pool) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate := p.gates[of]
	if gate == nil {
		limits := p.queue
		limits.Running = of.Running
		gate = &pool{Gate: admission.New(limits), starting: make(chan struct{}, max(1, runtime.NumCPU()/2))}
		p.gates[of] = gate
	}
	gate.users++
	return gate
}

func (p *pools) quit(of Pool, gate *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gate.users--; gate.users == 0 {
		delete(p.gates, of)
	}
}

// start waits for other starts of the pool of a call that has its slot, at most
// startWait; started must be called once.
func (p *pools) start(ctx context.Context, of Pool) (started func()) {
	p.mu.Lock()
	gate := p.gates[of]
	p.mu.Unlock()
	if gate == nil {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	select {
	case gate.starting <- struct{}{}:
		return func() { <-gate.starting }
	case <-ctx.Done():
		return func() {}
	}
}

// waiting is how many calls wait in pools.
func (p *pools) waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, gate := range p.gates {
		_, waiting := gate.Load()
		n += waiting
	}
	return n
}
