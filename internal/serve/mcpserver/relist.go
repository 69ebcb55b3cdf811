package mcpserver

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

// again has something done by one at a time: for all who want it done meanwhile it is
// done once more.
type again struct{ runs, more bool }

// begin says whether the caller is to do it.
func (a *again) begin() bool {
	begins := !a.runs
	a.runs, a.more = true, !begins
	return begins
}

// goesOn says, to who has done it, whether it is to be done once more.
func (a *again) goesOn() bool {
	a.runs, a.more = a.more, false
	return a.runs
}

// relisted is a server that has announced changes of its lists.
type relisted struct {
	again
	announced map[string]bool // methods, ever
	unsent    map[string]bool // those that clients have not heard
}

// listChanged lists the entry's server anew and tells clients, also where nothing
// that they see has changed: it is what the server says.
func (g *gateway) listChanged(entry string, methods ...string) {
	if g.s.config.Renew == nil || len(methods) == 0 {
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
	if r.begin() {
		g.s.soon(func() { g.relist(entry, r) })
	}
}

// listsEnded is listChanged for the lists of a process that has ended.
func (g *gateway) listsEnded(entry string) {
	g.mu.Lock()
	var methods []string
	if r := g.relisted[entry]; r != nil {
		methods = slices.Collect(maps.Keys(r.announced))
	}
	g.mu.Unlock()
	g.listChanged(entry, methods...)
}

func (g *gateway) relist(entry string, r *relisted) {
	for more := true; more; {
		g.mu.Lock()
		methods := slices.Sorted(maps.Keys(r.unsent))
		clear(r.unsent)
		g.mu.Unlock()
		g.renew(entry)
		g.s.Reload(g.s.closing)
		g.subscribeLost(entry)
		g.s.changed.Store(true)
		for _, method := range methods {
			g.showAgain(method)
		}
		g.rest(relistPause)
		more = g.goesOn(&r.again)
	}
}

// goesOn says, to who has done it, whether it is to be done once more.
func (g *gateway) goesOn(a *again) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return a.goesOn() && g.s.closing.Err() == nil
}

// renew has the lists taken. They stay as they were if that fails in the end.
func (g *gateway) renew(entry string) {
	for pause := relistPause; ; pause *= 2 {
		ctx, cancel := context.WithTimeout(g.s.closing, maxRelist)
		err := g.s.config.Renew(ctx, entry)
		cancel()
		if err == nil || g.s.closing.Err() != nil {
			return
		}
		g.s.config.Logger.Warn("a server has announced other lists, and those from before stand", "server", entry, "why", err)
		if pause > maxRelistPause {
			return
		}
		g.rest(pause)
	}
}

// rest waits, unless the server closes.
func (g *gateway) rest(pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-g.s.closing.Done():
	}
}
