package gateway

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// maxRelist bounds one attempt to take changed lists.
	maxRelist = time.Minute
	// relistPause is the least time between two lists of one server, which may
	// announce changes without end; a failed attempt is followed by others, each after
	// twice as long, up to maxRelistPause.
	relistPause    = time.Second
	maxRelistPause = 32 * time.Second
)

// coalescer runs a task on one goroutine; requests during a run cause one more run.
type coalescer struct{ running, requested bool }

// begin requests a run, and says whether the caller is to make it.
func (c *coalescer) begin() bool {
	begins := !c.running
	c.running, c.requested = true, !begins
	return begins
}

// next reports whether there were requests during the run.
func (c *coalescer) next() bool {
	c.running, c.requested = c.requested, false
	return c.running
}

// relisted is a server that has announced changes of its lists.
type relisted struct {
	coalescer
	announced map[string]bool // methods, ever
	unsent    map[string]bool // those that clients have not heard
}

// listChanged lists the entry's server anew and tells clients, also where nothing
// that they see has changed: it is what the server says.
func (g *Gateway) listChanged(entry string, methods ...string) {
	if g.host.Renew == nil || len(methods) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.relisted[entry]
	if r == nil {
		r = &relisted{announced: map[string]bool{}, unsent: map[string]bool{}}
		g.relisted[entry] = r
	}
	for _, method := range methods {
		r.announced[method], r.unsent[method] = true, true
	}
	g.coalesce(&r.coalescer, func() { g.relist(entry, r) })
}

// listsEnded is listChanged for the lists of a process that has ended.
func (g *Gateway) listsEnded(entry string) {
	g.mu.Lock()
	var methods []string
	if r := g.relisted[entry]; r != nil {
		methods = slices.Collect(maps.Keys(r.announced))
	}
	g.mu.Unlock()
	g.listChanged(entry, methods...)
}

func (g *Gateway) relist(entry string, r *relisted) {
	g.mu.Lock()
	methods := slices.Sorted(maps.Keys(r.unsent))
	clear(r.unsent)
	g.mu.Unlock()
	g.renew(entry)
	g.host.Reload()
	g.subscribeLost(entry)
	for _, method := range methods {
		g.announce(method)
	}
	g.pause(relistPause)
}

// coalesce has a task run, by one goroutine for all who want it. g is locked.
func (g *Gateway) coalesce(c *coalescer, task func()) {
	next := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return c.next() && g.host.Closing.Err() == nil
	}
	if c.begin() {
		g.host.Go(func() {
			for more := true; more; more = next() {
				task()
			}
		})
	}
}

// renew has the lists taken. They stay as they were if that fails in the end.
func (g *Gateway) renew(entry string) {
	for pause := relistPause; ; pause *= 2 {
		ctx, cancel := context.WithTimeout(g.host.Closing, maxRelist)
		err := g.host.Renew(ctx, entry)
		cancel()
		if err == nil || g.host.Closing.Err() != nil {
			return
		}
		g.host.Logger.Warn("a server has announced other lists, and those from before stand", "server", entry, "why", err)
		if pause > maxRelistPause {
			return
		}
		g.pause(pause)
	}
}

// pause waits, unless the server closes.
func (g *Gateway) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.host.Closing.Done():
	}
}
