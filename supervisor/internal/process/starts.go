package process

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// startsPerCPU may be under way for each CPU, and minStarts at least: more of them
// take longer each, and are done no sooner.
const (
	startsPerCPU = 4
	minStarts    = 8
)

// poolPerCPUs: a pool whose size is bounded has a start under way for so many CPUs. A
// start takes most of the CPU time of a short call and is not held by its CPU limits
// yet: a pool of calls that end at once would have all CPUs.
const poolPerCPUs = 2

// startTurn is how long a start keeps its turn: one that hangs, as at a granted
// folder of a dead file server, holds up nobody.
const startTurn = 500 * time.Millisecond

// defaultCPUWeight is that of a call without one of its own (cgroup v2's default).
const defaultCPUWeight = 100

// Starts lets a few sandboxes be built at a time: one of those with the greatest
// CPU weight first, of these one of the pool with the fewest, and then the oldest. It ends before the tool's own program
// begins, so what waits does not wait for a tool.
type Starts struct{ gate *admission.Gate }

// NewStarts makes them.
func NewStarts() Starts {
	most := max(minStarts, startsPerCPU*pace.CPUs)
	return Starts{admission.New(admission.Limits{Running: most, Queue: math.MaxInt, Wait: Forever})} // they are as few as the calls under way
}

// begin waits for a turn; over gives it back.
func (s Starts) begin(ctx context.Context, pool spec.Pool, weight int64) (over func(), err error) {
	ask := admission.Ask{Weight: cmp.Or(weight, defaultCPUWeight)}
	if pool.Running > 0 {
		ask.Share = admission.Share{Key: "pool " + pool.Name, Running: max(1, pace.CPUs/poolPerCPUs)}
	}
	release, err := s.gate.Acquire(ctx, ask)
	if err != nil {
		return nil, err
	}
	once := sync.OnceFunc(release)
	late := time.AfterFunc(startTurn, once)
	return func() { late.Stop(); once() }, nil
}

// UnderWay is how many sandboxes are being built.
func (s Starts) UnderWay() int {
	running, _ := s.gate.Load()
	return running
}
