package supervisor

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// pools are the gates of those that are in use.
type pools struct {
	queue admission.Limits // what Running does not say

	mu    sync.Mutex
	gates map[Pool]*pool
}

type pool struct {
	*admission.Gate
	users int // that wait or run; guarded by pools.mu
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
	release, err := gate.Acquire(ctx, admission.Ask{Share: admission.Share{Key: share.Key}}) // its quota is of all calls
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
		limits.Running, limits.Setting = of.Running, fmt.Sprintf("running: %d (%s)", of.Running, of.Name)
		gate = &pool{Gate: admission.New(limits)}
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
