package conformance

import (
	"context"
	"time"

	"github.com/docker/go-units"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

const (
	// muchContent is what a call must send to say anything of backpressure: the
	// windows of the connection hold half a MiB.
	muchContent = 2 << 20
	// loudContent makes a call worth trying: more may come after it.
	loudContent = 32 << 10
	muchWithin  = 3 * time.Second
	// A host that reads nothing for so long must not cost the tool more than
	// this.
	slowHost     = 1500 * time.Millisecond
	mayHoard     = 64 << 20
	measureEvery = 50 * time.Millisecond
)

// doBackpressure reads nothing of a call that would send a lot, and looks at
// what the binary then keeps in memory.
func doBackpressure(ctx context.Context, b *bench, r *reply) {
	var t tally
	for _, call := range b.job.Calls {
		if f := b.with(ctx, func(c *child) Finding { return b.sendsMuch(ctx, c, call) }); f.Status != Pass {
			t.add(f)
			continue
		}
		t.add(b.with(ctx, func(c *child) Finding { return b.hoards(ctx, c, call) }))
	}
	r.set(ruleBackpressure, t.finding(skipped("no call sent more than %s: nothing to hold back", units.BytesSize(muchContent))))
}

// sendsMuch passes a call that is worth trying.
func (b *bench) sendsMuch(ctx context.Context, c *child, call call) Finding {
	f := c.take(ctx, b.request("1", call), flightOptions{})
	b.until(muchWithin, func() bool { return f.over() || f.now().bytes >= muchContent })
	if o := f.now(); o.bytes >= muchContent {
		return passed("%d", o.bytes)
	}
	return Finding{}
}

func (b *bench) hoards(ctx context.Context, c *child, call call) Finding {
	before := b.residentBytes()
	grown := make(chan int64, 1)
	first := true
	f := c.take(ctx, b.request("1", call), flightOptions{onEvent: func(*pluginv1.CallEvent) {
		if first {
			first = false
			grown <- b.watchMemory() - before
		}
	}})
	select {
	case n := <-grown:
		if n > mayHoard {
			return failed("let a send block until the host takes it, instead of putting what is to be sent into a queue without bound",
				"%s: while the host read nothing for %s its memory grew by %s", call.Name, short(slowHost), units.BytesSize(float64(n)))
		}
	case <-f.done:
		return skipped("%s: it sent nothing this time", call.Name)
	}
	if o := f.wait(time.Second); !o.timedOut && o.problem() != "" {
		return failed(o.fix(), "%s: after the host was slow: %s", call.Name, o.problem())
	}
	return passed("%s: it waits", call.Name)
}

// watchMemory is the most that the binary had while the host was slow.
func (b *bench) watchMemory() (most int64) {
	for range slowHost / measureEvery {
		time.Sleep(measureEvery)
		most = max(most, b.residentBytes())
	}
	return most
}
