package supervisor

import (
	"context"

	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// bringUp hands the owner processes and a connection, or the reason why there is
// none.
func (c *Call) bringUp(ctx context.Context) {
	defer c.p.Policy.Close()
	counts := 1
	if c.p.Describes() {
		counts = 0
	}
	if guest := c.line.Take(c, counts); guest != nil {
		c.Spawned(guest)
		c.send(input{kind: inConnected, conn: guest.Conn()})
		return
	}
	made, err := c.s.maker.Start(ctx, c.p, c.log(), c, process.Progress{
		Launching: func() { c.launching.Store(true) },
		Spawned:   func(p *process.Process) { c.Spawned(c.line.First(p, c, counts)) },
	})
	if err != nil {
		c.s.doubtAfter(ctx, err)
		c.send(input{kind: inStartFailed, err: err})
		return
	}
	c.send(input{kind: inConnected, conn: made.Conn()})
}

// Spawned says that there are processes.
func (c *Call) Spawned(t Tree) {
	c.spawned = t
	c.send(input{kind: inSpawned, tree: t})
}

// joinLine takes a place in the line for the call's kept process, if it wants
// one.
func (c *Call) joinLine() (err error) {
	if keep := c.p.Request.Keep; keep != nil {
		c.line, err = c.s.kept.Join(kept.KeyOf(c.p), *keep)
	}
	return err
}
